// A server under test: started, watched through /proc, and killed whatever happens.
import { spawn } from 'node:child_process'
import { accessSync, constants, readFileSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

// Debian keeps daemons in sbin, which a user's PATH often lacks.
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
const TICK_US = 10_000
const PAGE_KIB = 4
const OUTPUT_MAX = 1_000_000

const children = new Set()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1))

export function findCommand(command) {
  if (isAbsolute(command)) return command
  return FOLDERS.map((folder) => join(folder, command)).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** The path of a server's command; undefined = it is not installed, which is said. */
export function commandOf({ name, command }) {
  const path = findCommand(command)
  if (path === undefined) console.log(`${name}: left out, ${command} is not installed`)
  return path
}

/**
 * Runs a command whose output is kept for the message if it ends by itself. `stdout`: a file descriptor
 * for a command that prints so much that keeping it would take CPU from what is measured.
 */
export function startProcess(name, path, args, env = {}, stdout = 'pipe') {
  const child = spawn(path, args, {
    stdio: ['ignore', stdout, 'pipe'],
    env: { ...process.env, ...env },
  })
  let output = ''
  const keep = (chunk) => {
    output = (output + chunk).slice(-OUTPUT_MAX)
  }
  child.stdout?.on('data', keep)
  child.stderr.on('data', keep)
  children.add(child)
  const ended = new Promise((resolve) => child.once('close', resolve))
  child.once('close', () => children.delete(child))
  child.once('error', (error) => keep(error.message))
  return {
    name,
    pid: child.pid,
    /** The end of what it printed. */
    output: () => output,
    get failure() {
      return children.has(child) ? undefined : `${name} ended: ${output.slice(-4000)}`
    },
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** User and system CPU of a process with its children so far, in microseconds. */
export function cpuUs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ')
  const total = { user: Number(fields[11]) * TICK_US, system: Number(fields[12]) * TICK_US }
  for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')) {
    if (child === '') continue
    const { user, system } = cpuUs(child)
    total.user += user
    total.system += system
  }
  return total
}

/** CPU of this process's children that have ended, in microseconds: the load generator's. */
export function endedChildrenUs() {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1).split(' ')
  return (Number(fields[13]) + Number(fields[14])) * TICK_US
}

export function residentMib(pid) {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
  return (pages * PAGE_KIB) / 1024
}
