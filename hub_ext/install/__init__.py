"""What an installation has beside the chart of the hub: values about services, and manifests.

The chart of Zero to JupyterHub brings the hub. What it does not bring is made here: namespaces, accounts and
roles, network policies, priorities, a budget of disruptions, and Deployments of services.

Pure: no clock, no network.
"""
