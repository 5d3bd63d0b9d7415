/** What problems name as the place of an object. */
export const CLUSTER_PLACE = 'kubernetes'
