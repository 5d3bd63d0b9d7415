/** What this server answers itself, whatever server the page shows. */
const OWN_PATHS: ReadonlySet<string> = new Set(['/v1/fleet', '/v1/session'])

/**
 * Returns the path of a request, which asks `server` through this server; '' = this one. Undefined: this server does
 * not send such a request on.
 */
export function serverPath(method: string, path: string, server: string): string | undefined {
  const [pure = '', query = ''] = path.split('?')
  const parameters = new URLSearchParams(query)
  if (server === '' || OWN_PATHS.has(pure) || parameters.has('server')) return path
  if (method !== 'GET' && pure !== '/v1/explain') return undefined
  parameters.set('server', server)
  return `${pure}?${parameters}`
}
