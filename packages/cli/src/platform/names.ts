/** Names of the platform's own objects, the same on one machine and in a cluster. */
export const platformNamespace = 'corral'
export const brokerService = 'corral-broker'
export const brokerServicePort = 8787
export const daemonImage = 'corral/daemon'
