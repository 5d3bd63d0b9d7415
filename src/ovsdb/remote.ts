/** Where a database server listens. */
export type OvsdbRemote =
  | { readonly kind: 'tcp' | 'ssl'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

const PORT_MAX = 65_535

/**
 * Parses remotes as Open vSwitch writes them (ovsdb(7)), separated by commas: `tcp:HOST:PORT`,
 * `ssl:HOST:PORT` with IPv6 addresses in brackets, `unix:PATH`. Undefined = one of them is invalid.
 */
export function scanRemotes(text: string): readonly OvsdbRemote[] | undefined {
  const remotes = text.split(',').map(scanRemote)
  const valid = remotes.filter((remote) => remote !== undefined)
  return valid.length === remotes.length ? valid : undefined
}

function scanRemote(text: string): OvsdbRemote | undefined {
  const [, path] = /^unix:(.+)$/.exec(text) ?? []
  if (path !== undefined) return { kind: 'unix', path }
  const found = /^(tcp|ssl):(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]/\s]+)):(\d{1,5})$/.exec(text)
  if (found === null) return undefined
  const [, kind, address, name = '', digits] = found
  const port = Number(digits)
  if (port < 1 || port > PORT_MAX) return undefined
  return { kind: kind === 'ssl' ? 'ssl' : 'tcp', host: address ?? name, port }
}

export function printRemote(remote: OvsdbRemote): string {
  if (remote.kind === 'unix') return `unix:${remote.path}`
  const { kind, host, port } = remote
  return `${kind}:${host.includes(':') ? `[${host}]` : host}:${port}`
}
