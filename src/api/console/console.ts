import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { isLocalName } from '../../base/loopback.ts'
import type { AdminSite } from '../../plugin/admin.ts'
import { roleOf } from '../admin/access.ts'
import { type Asset, loadAssets } from './load-assets.ts'
import { composePlainPage, composePlainRefusal } from './plain-page.ts'

const ROOT = '/console/'
/** The page without JavaScript. */
const PLAIN = `${ROOT}plain`
/** From the sources too: the build has the same depth. */
const ASSETS = fileURLToPath(new URL('../../../dist/api/console/assets/', import.meta.url))
const TEXT = 'text/plain; charset=utf-8'
const HTML = 'text/html; charset=utf-8'
const NEEDS_SCRIPT =
  'This server asks for a token, which a page without JavaScript can not send. Enable JavaScript, or use `sextant status`.'

/** A page runs only its own files, talks only to its own server, and no other page can embed or open it. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    ...["script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** Opens the web console at `/console/`. Throws InputError if it is not built. */
export function open(folder = ASSETS) {
  const assets = loadAssets(folder)
  return {
    /** Answers a request; false = the path is not one of the console. Files have no data, so they need no token. */
    answer(site: AdminSite, request: IncomingMessage, response: ServerResponse): boolean {
      const [path = ''] = (request.url ?? '').split('?', 1)
      if (!path.startsWith(ROOT) && path !== '/console') return false
      for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value)
      const { host } = request.headers
      if (site.tokens === undefined && !isLocalName(host, site.hosts)) {
        return refuse(
          response,
          403,
          'the Host header must be an address, localhost, or a name of `host`',
        )
      }
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        response.setHeader('allow', 'GET, HEAD')
        return refuse(response, 405, `${request.method} is not a method of this page`)
      }
      if (path === '/console') {
        response.setHeader('location', ROOT)
        return refuse(response, 308, `the console is at ${ROOT}`)
      }
      if (path === PLAIN) return sendPlain(site, request, response)
      const asset = assets.get(path.slice(ROOT.length))
      if (asset === undefined) return refuse(response, 404, 'the console has no such file')
      return sendAsset(asset, request, response)
    },
  }
}

function sendAsset(asset: Asset, { headers }: IncomingMessage, response: ServerResponse): true {
  const isGzip = acceptsGzip(String(headers['accept-encoding'] ?? ''))
  const tag = `"${asset.digest}${isGzip ? '-gzip' : ''}"`
  // The server of the address may be another version next time.
  response.setHeader('cache-control', 'no-cache')
  response.setHeader('etag', tag)
  response.setHeader('vary', 'accept-encoding')
  if ((headers['if-none-match'] ?? '').split(/ *, */).includes(tag)) {
    response.writeHead(304).end()
    return true
  }
  if (isGzip) response.setHeader('content-encoding', 'gzip')
  return send(response, 200, asset.contentType, isGzip ? asset.gzip : asset.identity)
}

function sendPlain(site: AdminSite, request: IncomingMessage, response: ServerResponse): true {
  response.setHeader('cache-control', 'no-store')
  const isAdmitted = typeof roleOf(site, request) === 'string'
  const page = isAdmitted ? composePlainPage(site.status()) : composePlainRefusal(NEEDS_SCRIPT)
  return send(response, isAdmitted ? 200 : 401, HTML, Buffer.from(page))
}

/** RFC 9110 section 12.5.3. */
function acceptsGzip(accepted: string): boolean {
  return accepted
    .toLowerCase()
    .split(',')
    .some((coding) => /^ *(?:gzip|\*) *(?:; *q=(?:1|0\.0*[1-9])[\d.]* *)?$/.test(coding))
}

function refuse(response: ServerResponse, status: number, text: string): true {
  response.setHeader('cache-control', 'no-store')
  return send(response, status, TEXT, Buffer.from(`${text}\n`))
}

/** Node.js sends no body in reply to HEAD. */
function send(response: ServerResponse, status: number, type: string, body: Buffer): true {
  response.writeHead(status, { 'content-type': type, 'content-length': body.length })
  response.end(body)
  return true
}
