// Named in .taprc: runs first in each test process and in each thread of one.
import { register } from 'node:module'
import { isMainThread } from 'node:worker_threads'
import processOnSpawn from 'process-on-spawn'

register('./typescript-hooks.mjs', import.meta.url)

// Before Node 22 tap takes back what .taprc says, and threads would load its hook, and with it a compiler each.
if (isMainThread) {
  await import('tap')
  process.env.TAP_TYPE_STRIP_ONLY = '1'
}

// Tap has all Node processes that a test starts note the files that they load, in each thread, and catch their signals. A
// server takes longer for that than for its whole start; and what is tested is to run as it does without us.
const TAPS_OPTION = /"?--import=[^\s"]*\/@tapjs\/processinfo\/[^\s"]*"?/
processOnSpawn.addListener((child) => {
  const { NODE_OPTIONS = '', ...env } = child.env
  const options = NODE_OPTIONS.replace(TAPS_OPTION, '').trim()
  child.env = options === '' ? env : { ...env, NODE_OPTIONS: options }
})
