/** The parameters of the address that choose what a map shows instead of the present, at most one of them. */
const PREVIEWS = ['drain', 'undrain', 'shift', 'event'] as const
export type MapPreviews = Readonly<Partial<Record<(typeof PREVIEWS)[number], string>>>

/** Changes the address so that the map shows the present. */
export const NOW: Readonly<Record<(typeof PREVIEWS)[number], string>> = {
  drain: '',
  undrain: '',
  shift: '',
  event: '',
}

/** Returns the path of the API for the map that an address is of. `get`: a parameter of it, '' = absent. */
export function pathOfMap(get: (name: string) => string): string {
  const query = new URLSearchParams({ name: get('name'), type: get('type') || 'A' })
  for (const preview of PREVIEWS) if (get(preview) !== '') query.set(preview, get(preview))
  return `/v1/map?${query}`
}

/** True if an address is of the present. */
export function isPresent(get: (name: string) => string): boolean {
  return PREVIEWS.every((preview) => get(preview) === '')
}
