import { readFileSync } from 'node:fs'
import { InputError } from '../base/errors.ts'
import { Dispenser } from '../corefile/dispenser.ts'
import type { ServerBlock } from '../corefile/parser.ts'
import { ADMIN_PORT_DEFAULT, scanAdminOrigin } from '../plugins/admin/admin-origin.ts'
import { type AdminOptions, scanAdmin } from '../plugins/admin/options.ts'
import { readToken } from '../plugins/admin/token.ts'
import { DIRECTIVE_NAMES } from '../plugins/order.ts'
import { declaredNames } from '../plugins/plugin/declared.ts'
import { loadCorefile } from '../server/corefile-source.ts'
import type { AdminArgs } from './admin-args.ts'
import { chooseCorefile } from './corefile.ts'
import { DNS_PORT } from './serve-args.ts'

/** An admin API and the credentials for it. */
export interface AdminTarget {
  /** `http://localhost:9154` */
  readonly origin: string
  /** Path of a Unix socket, which is used in place of the address in `origin`; '' = none. */
  readonly socket: string
  /** '' = none. */
  readonly token: string
  /** Certificates of authorities, in PEM; undefined = those of Node.js. */
  readonly ca: string | undefined
  /** The server must have this certificate, in PEM; undefined = one of an authority. */
  readonly certificate: string | undefined
}

const EVERY_HOST = ['', '0.0.0.0', '[::]']

/** Throws InputError if the server, the Corefile or a file is invalid. */
export function findAdmin({ server, conf, tokenFile, ca }: AdminArgs): AdminTarget {
  const isSocket = server?.startsWith('/') === true
  const given = {
    socket: isSocket ? server : '',
    token: tokenFile === undefined ? '' : attempt('--token-file', () => readToken(tokenFile)),
    ca: ca === undefined ? undefined : readText('--ca', ca),
  }
  if (server !== undefined && server !== '') {
    if (conf !== undefined) throw new InputError(undefined, 'use either @SERVER or -conf')
    const origin = isSocket ? 'http://localhost' : originOf(server)
    return { ...given, origin, certificate: undefined }
  }
  const { address, tokens, tls } = findDirective(conf)
  const [host = '', port = ''] = splitAddress(address)
  const reached = EVERY_HOST.includes(host) ? (host === '[::]' ? '[::1]' : '127.0.0.1') : host
  return {
    socket: '',
    origin: `${tls === undefined ? 'http' : 'https'}://${reached}:${port}`,
    token: given.token || tokenOf(tokens),
    ca: given.ca,
    // Of this machine, so that its name and authority do not matter.
    certificate: tls === undefined || ca !== undefined ? undefined : readText('tls', tls.cert),
  }
}

function originOf(server: string): string {
  const origin = scanAdminOrigin(server)
  if (origin !== undefined) return origin
  throw new InputError(
    undefined,
    `@${server} is not a server: write @HOST, @HOST:PORT or @https://HOST:PORT`,
  )
}

/** The token that allows most. Throws InputError. */
function tokenOf({ view, operate }: AdminOptions['tokens']): string {
  const path = operate || view
  return path === '' ? '' : attempt('token', () => readToken(path))
}

/** The first directive `admin` of the Corefile. Throws InputError if it has no such directive. */
function findDirective(conf: string | undefined): AdminOptions {
  const source = chooseCorefile(conf, DNS_PORT)
  const { blocks } = loadCorefile(source, DNS_PORT, {
    env: process.env,
    directiveNames: DIRECTIVE_NAMES,
    declaredNames,
    warn: () => {},
  })
  for (const block of blocks) {
    const tokens = block.directives.get('admin')
    if (tokens !== undefined) return scanAdmin(new Dispenser(tokens), rootOf(block)).options
  }
  const name = source.kind === 'file' ? source.path : source.name
  const message = `${name} has no directive admin: add it, or name a server, such as @localhost:${ADMIN_PORT_DEFAULT}`
  throw new InputError(undefined, message)
}

function rootOf({ directives }: ServerBlock): string {
  const tokens = directives.get('root')
  if (tokens === undefined) return '.'
  const d = new Dispenser(tokens)
  d.next()
  return d.onlyArg()
}

function splitAddress(address: string): readonly string[] {
  const colon = address.lastIndexOf(':')
  return [address.slice(0, colon), address.slice(colon + 1)]
}

function readText(what: string, path: string): string {
  return attempt(what, () => readFileSync(path, 'utf8'))
}

function attempt(what: string, read: () => string): string {
  try {
    return read()
  } catch (error) {
    throw new InputError(
      undefined,
      `${what}: ${error instanceof Error ? error.message : error}`,
      error,
    )
  }
}
