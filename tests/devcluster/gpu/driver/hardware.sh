#!/bin/sh
# hardware.sh FOLDER PROGRAM…: run a program where the machine has the cards that FOLDER describes.
# It finds FOLDER/mps at /mps, as in NVIDIA's containers; the file system around it is the machine's, under a
# root of bind mounts. All mounts are in a namespace of the program's own and end with it.
set -eu
if [ -z "${HARDWARE_NAMESPACE-}" ]; then
    HARDWARE_NAMESPACE=own exec unshare --mount --propagation private "$0" "$@"
fi
folder=$1
root=$folder/root
shift
mount --bind "$folder/proc" /proc/driver
mount --bind "$folder/pci" /sys/bus/pci/devices
mount -t tmpfs root "$root"
for path in /*; do
    if [ -L "$path" ]; then
        cp -P "$path" "$root$path"
    elif [ -d "$path" ]; then
        mkdir "$root$path"
        mount --rbind "$path" "$root$path"
    fi
done
mkdir -p "$root/mps"
mount --bind "$folder/mps" "$root/mps"
exec chroot "$root" "$@"
