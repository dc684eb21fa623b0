"""The prepuller: what the catalog can start is on the nodes where it can start, before users come.

It observes the catalog, the nodes and its own pods; judges for each image and node whether the image is there
for the credentials that workspaces use, and what to fetch next; and acts by making short-lived pods in a
namespace of its own. A pod that has ended stays as the pin that keeps the kubelet from collecting the image:
it takes no room on the node, and it is the only record there is, so a restart of the service loses nothing.
"""
