/** The resources that Services are read from. */
export const SERVICES = 'services'
export const NODES = 'nodes'
export const SLICES = 'endpointslices'
export const PODS = 'pods'
