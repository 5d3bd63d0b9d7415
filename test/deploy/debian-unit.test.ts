import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { needs, run } from '../support/peer.ts'
import { root } from '../support/server.ts'

const UNIT = 'deploy/debian/sextant.service'

/** Calls of a server with UDP, TCP, snapshots and a control socket, as strace lists them; libc's own left out. */
const CALLS = [
  ...['accept4', 'bind', 'connect', 'getsockopt', 'listen', 'recvmmsg', 'sendmmsg', 'setsockopt'],
  ...['clone3', 'eventfd2', 'epoll_pwait', 'fcntl', 'fsync', 'getdents64', 'inotify_init1', 'mmap'],
  ...['mprotect', 'prlimit64', 'rename', 'sched_getaffinity', 'setpriority', 'statx', 'unlink'],
]

/** Resolves to the system calls of the sets and names of a SystemCallFilter. */
async function expand(words: readonly string[]): Promise<Set<string>> {
  const calls = new Set<string>()
  for (const word of words) {
    if (!word.startsWith('@')) calls.add(word)
    else {
      const { stdout } = await run('systemd-analyze', ['syscall-filter', word])
      const parts = stdout.match(/^ {4}[@\w-]+$/gm) ?? []
      for (const call of await expand(parts.map((part) => part.trim()))) calls.add(call)
    }
  }
  return calls
}

t.test(`${UNIT} allows the calls of a server`, needs('systemd-analyze'), async (t) => {
  const unit = readFileSync(join(root, UNIT), 'utf8')
  const filters = [...unit.matchAll(/^SystemCallFilter=(~?)(.*)$/gm)]
  const allowed = await expand(['@default'])
  for (const [, isRefusal, words] of filters) {
    for (const call of await expand(words!.split(' '))) {
      if (isRefusal === '~') allowed.delete(call)
      else allowed.add(call)
    }
  }
  t.strictSame(
    CALLS.filter((call) => !allowed.has(call)),
    [],
  )
  t.match(unit, /^SystemCallErrorNumber=EPERM$/m, 'other calls fail, and do not end the process')
})

// Other versions rate other settings.
const RATED_BY = /^systemd 252 /m

t.test(`${UNIT} has the score that is stated`, needs('systemd-analyze'), async (t) => {
  const { stdout: version } = await run('systemd-analyze', ['--version'])
  if (!RATED_BY.test(version)) return t.comment(`not rated by ${version.split('\n')[0]}`)
  const { stdout } = await run('systemd-analyze', ['security', '--offline=true', join(root, UNIT)])
  const score = /exposure level for .*: ([\d.]+)/.exec(stdout)?.[1]
  t.match(readFileSync(join(root, 'docs/how-to/install.md'), 'utf8'), `scores ${score} in`)
})
