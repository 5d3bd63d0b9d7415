import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Before it reads the Corefile, a server starts as many data threads as most Corefiles need here, at most two.

/** '' for a thread that has ended. */
function nameOf(pid: number, task: string): string {
  try {
    return readFileSync(`/proc/${pid}/task/${task}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}

/** The threads of a process with the name of data threads. */
function dataThreads(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`)
  return tasks.filter((task) => nameOf(pid, task) === 'sextant data').length
}

/** Node.js 20 and 22 give threads no names. */
const hasNames = process.platform === 'linux' && Number(process.versions.node.split('.')[0]) >= 24

const TABLE = [
  { name: 'one thread', multisocket: 1, env: {}, threads: 1 },
  { name: 'more than were started early', multisocket: 3, env: {}, threads: 3 },
  { name: 'no batches', multisocket: 1, env: { SEXTANT_UDP: 'dgram' }, threads: 0 },
]
for (const { name, multisocket, env, threads } of TABLE) {
  t.test(
    `a server keeps only the threads that it needs: ${name}`,
    { skip: !hasNames },
    async (t) => {
      const corefile = `example.org:{PORT} {\n bind 127.0.0.1\n multisocket ${multisocket}\n whoami\n}\n`
      const server = await startServer(t, { corefile, env })
      await until(() => dataThreads(server.process.pid!) === threads, `${threads} threads`)
    },
  )
}
