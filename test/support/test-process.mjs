// Named in .taprc: runs first in each test process and in each thread of one.
import { register } from 'node:module'
import { isMainThread } from 'node:worker_threads'
import processOnSpawn from 'process-on-spawn'

register('./typescript-hooks.mjs', import.meta.url)

// On a terminal tap sets it, and the programs that a test starts would print colors.
delete process.env.FORCE_COLOR

// Before Node 22 tap takes back what .taprc says, and threads would load its hook, and with it a compiler each.
if (isMainThread) {
  const { t } = await import('tap')
  process.env.TAP_TYPE_STRIP_ONLY = '1'
  endAfterFailure(t)
}

// Tap has all Node processes that a test starts note the files that they load, in each thread, and catch their signals. A
// server takes longer for that than for its whole start; and what is tested is to run as it does without us.
const TAPS_OPTION = /"?--import=[^\s"]*\/@tapjs\/processinfo\/[^\s"]*"?/
processOnSpawn.addListener((child) => {
  const { NODE_OPTIONS = '', ...env } = child.env
  const options = NODE_OPTIONS.replace(TAPS_OPTION, '').trim()
  child.env = options === '' ? env : { ...env, NODE_OPTIONS: options }
})

/**
 * A test that fails half-way may leave a server, a thread or a timer, which keeps the process until tap's timeout. So if a
 * test failed, and no other has begun for a while, the process ends and says what was left.
 */
function endAfterFailure(t) {
  const CHECK_MS = 1000
  const IDLE_CHECKS_MAX = 20
  let idleChecks = 0
  const timer = setInterval(() => {
    idleChecks = t.idle && !t.passing() ? idleChecks + 1 : 0
    if (idleChecks < IDLE_CHECKS_MAX) return
    clearInterval(timer)
    t.comment(`still open after a failure: ${process.getActiveResourcesInfo().join(', ')}`)
    t.end()
    process.exit(1)
  }, CHECK_MS)
  timer.unref()
}
