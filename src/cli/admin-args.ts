import { flagsOf } from './args.ts'

/** Which server a command means, as written. */
export interface AdminArgs {
  /** Of `@SERVER`; undefined or '' = the directive `admin` of the Corefile. */
  readonly server: string | undefined
  readonly conf: string | undefined
  readonly tokenFile: string | undefined
  readonly ca: string | undefined
}

/** Flags of all commands that ask a server, besides `-conf`. */
export const ADMIN_FLAGS = flagsOf(`
  @SERVER | | a running server with the directive admin: HOST, HOST:PORT, a URL or the path of a socket; @ alone = the server of the Corefile
  --token-file FILE | | with @SERVER: send the token in FILE
  --ca FILE | | with @SERVER: accept certificates of these authorities, in PEM
`)

/** True for `@SERVER`. */
export function isServer(word: string): boolean {
  return word.startsWith('@')
}

/**
 * Returns which server a command means; undefined = none. Of `words`, only those with `@` are read. Returns a
 * string if the arguments are invalid: the reason.
 */
export function scanAdminArgs(
  words: readonly string[],
  given: ReadonlyMap<string, string>,
): AdminArgs | string | undefined {
  const servers = words.filter(isServer)
  const [server, ...others] = servers
  if (others.length > 0) return `more than one server: ${servers.join(' ')}`
  const [tokenFile, ca] = [given.get('token-file'), given.get('ca')]
  if (server !== undefined)
    return { server: server.slice(1), conf: given.get('conf'), tokenFile, ca }
  if (tokenFile === undefined && ca === undefined) return undefined
  return '--token-file and --ca are for a running server: add @SERVER, or @ for the server of the Corefile'
}
