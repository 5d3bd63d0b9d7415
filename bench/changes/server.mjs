// The servers that bench/changes.mjs looks at: the product over manifests, and one without files.
import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../peers/ports.mjs'
import { residentMib, startProcess } from '../peers/server-process.mjs'
import { writeManifests, ZONE } from './manifests.mjs'

export const THREADS = 2
const MAIN = new URL('../../dist/main.js', import.meta.url).pathname
const DIRECT = new URL('./direct-server.mjs', import.meta.url).pathname

/** The product with `names` names that stay, once it has read them all. */
export async function startServer(directory, names) {
  const manifests = join(directory, 'manifests')
  writeManifests(manifests, names)
  const [port, metricsPort] = [await freePort(), await freePort()]
  const conf = join(directory, 'Corefile')
  writeFileSync(
    conf,
    `${ZONE}:${port} {
    bind 127.0.0.1
    multisocket ${THREADS}
    errors
    minimal
    prometheus 127.0.0.1:${metricsPort}
    kuadrant {
        manifests ${manifests}
    }
}
`,
  )
  const args = [MAIN, 'serve', '-conf', conf]
  const server = startProcess('sextant', process.execPath, args, { SEXTANT_UDP: 'batch' })
  // The last of its start-up lines: records are read, sockets open and threads started.
  while (!/^Sextant-/m.test(server.output())) {
    if (server.failure !== undefined) throw new Error(server.failure)
    await delay(50)
  }
  await delay(1000)
  const [told = ''] = /zone \S+: \d+ records.*/.exec(server.output()) ?? []
  console.log(`${told}, ${residentMib(server.pid).toFixed(0)} MiB resident`)
  return { ...server, port, manifests, commits: () => commits(metricsPort) }
}

/** How many commits there were, and how long all of them took. */
async function commits(port) {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const field = (name) => {
    const pattern = new RegExp(`^sextant_kuadrant_commit_duration_seconds_${name} (\\S+)`, 'm')
    return Number(pattern.exec(text)[1])
  }
  return { count: field('count'), ms: field('sum') * 1000 }
}

/** `ask` sends a message, and resolves with the answer. */
export async function startDirect(names) {
  const port = await freePort()
  const child = fork(DIRECT, [port, names, THREADS].map(String), { stdio: 'inherit' })
  process.once('exit', () => child.kill('SIGKILL'))
  const heard = () =>
    new Promise((resolve, reject) => {
      const fail = (code) => reject(new Error(`the server without files ended with ${code}`))
      child.once('exit', fail)
      child.once('message', (message) => {
        child.off('exit', fail)
        resolve(message)
      })
    })
  await heard()
  const ask = (message) => {
    const answer = heard()
    child.send(message)
    return answer
  }
  return { port, pid: child.pid, ask }
}
