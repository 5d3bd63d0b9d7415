/*
 * The application of a site: an HTTP server that answers each request with 200: `fail-over-gateway.mjs ADDRESS PORT`. Prints
 * `ready`.
 */
import { createServer } from 'node:http'

const [address, port] = process.argv.slice(2)
createServer((_, reply) => reply.end()).listen(Number(port), address, () => console.log('ready'))
