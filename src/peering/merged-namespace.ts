/** Namespace of merged records; their name is the host. */
export const MERGED_NAMESPACE = 'peers'
