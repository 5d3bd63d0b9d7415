// The application of a site: answers each HTTP request with 200.
//   node gateway.mjs ADDRESS PORT
import { createServer } from 'node:http'

const [address, port] = process.argv.slice(2)
createServer((_, reply) => reply.end()).listen(Number(port), address)
