module devcluster/coredns

go 1.26.0
