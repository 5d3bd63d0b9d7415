/** Namespace of the records of other sites; their names are `HOST@SITE`. */
export const MERGED_NAMESPACE = 'peers'
