export const ADMIN_PORT_DEFAULT = 9154

/**
 * Returns the origin of an admin API, such as `https://192.0.2.53:9154`, for `HOST`, `HOST:PORT` or a URL; undefined =
 * the text has another form. The default is HTTPS, and for this machine HTTP.
 */
export function scanAdminOrigin(server: string): string | undefined {
  const isUrl = /^https?:\/\//.test(server)
  const isIPv6 = !isUrl && /^[0-9a-f.]*:[0-9a-f.]*:[0-9a-f:.]*$/i.test(server)
  const place = isIPv6 ? `[${server}]` : server
  const isLocal = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(place)
  const text = isUrl ? server : `${isLocal ? 'http' : 'https'}://${place}`
  const hasPort = /:\d+\/?$/.test(text)
  try {
    const url = new URL(hasPort ? text : `${text}:${ADMIN_PORT_DEFAULT}`)
    const { origin, pathname, username, password, search, hash } = url
    const hasMore = `${username}${password}${search}${hash}` !== ''
    // `origin` lacks the default port of the scheme, which is right.
    return pathname === '/' && !hasMore ? origin : undefined
  } catch {
    return undefined
  }
}
