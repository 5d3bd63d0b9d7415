import { fileURLToPath } from 'node:url'
import { javascriptOf } from './javascript.mjs'

/** Hook of Node's module loader: compiles `.ts` files, and leaves all others to the next hook. */
export async function load(url, context, nextLoad) {
  const { protocol, pathname } = new URL(url)
  if (protocol !== 'file:' || !pathname.endsWith('.ts')) return nextLoad(url, context)
  return { format: 'module', source: javascriptOf(fileURLToPath(url)), shortCircuit: true }
}
