import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InputError } from '../base/errors.ts'
import { systemTimers } from '../base/timers.ts'
import { ApiError, type ApiObject, collectionPath, textOf } from '../kube/api.ts'
import type { KubeConfig } from '../kube/client-library.ts'
import { HttpsClient } from '../kube/https-client.ts'
import { loadKubeConfig } from '../kube/kubeconfig.ts'
import { Lister } from '../kube/list.ts'
import { isConflict, Objects } from '../kube/objects.ts'
import { describe } from '../server/supervisor.ts'
import { findKubeconfig } from './kubeconfig.ts'
import { type KubectlArgs, scanKubectlArgs } from './kubectl-args.ts'
import { corefileOf, findServers } from './kubectl-pods.ts'
import type { Output } from './output.ts'
import { openPodSocket } from './pod-socket.ts'

type Run = (argv: readonly string[], output: Output) => Promise<number>

/** The commands that query a server. */
const ASKING: Readonly<Record<string, () => Promise<Run>>> = {
  status: async () => (await import('./status.ts')).runStatus,
  peers: async () => (await import('./status.ts')).runPeers,
  explain: async () => (await import('./explain.ts')).runExplain,
  drains: async () => (await import('./drain.ts')).runDrains,
}

/** How often a ConfigMap is edited again because another writer was faster. */
const EDITS_MAX = 5
const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' }
const RECORDS = { group: 'kuadrant.io', version: 'v1alpha1', plural: 'dnsrecords' }
const FIELD_MANAGER = 'kubectl-sextant'

/** A cluster, and a folder for files that commands read. */
interface Cluster {
  readonly args: KubectlArgs
  readonly config: KubeConfig
  readonly api: HttpsClient
  readonly folder: string
}

/** `sextant kubectl`: runs a command for the servers of a cluster. Resolves to its exit code. */
export async function runKubectl(argv: readonly string[], output: Output): Promise<number> {
  // Only its owner can open the sockets in it.
  const folder = mkdtempSync(join(tmpdir(), 'kubectl-sextant-'))
  try {
    const args = scanKubectlArgs(argv)
    const { kubeconfig, context } = args
    const load = () => loadKubeConfig({ kubeconfig: findKubeconfig(kubeconfig), context })
    const config = await load()
    const cluster = { args, config, api: new HttpsClient(config, load), folder }
    const ask = ASKING[args.command]
    if (ask !== undefined) return await askPods(cluster, await ask(), output)
    if (args.command === 'what-if') return await compare(cluster, output)
    return await editDrains(cluster, output)
  } catch (error) {
    if (!(error instanceof InputError) && !(error instanceof ApiError)) throw error
    output.printError(describe(error))
    return 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs a command for the chosen Pods, one after the other. Resolves to the highest exit code. */
async function askPods(cluster: Cluster, run: Run, output: Output): Promise<number> {
  const { args, config, folder } = cluster
  const pods = await findServers(cluster.api, args)
  let code = 0
  for (const [i, { name }] of pods.entries()) {
    if (pods.length > 1) output.printError(`Pod ${name}:`)
    const at = { namespace: args.namespace, pod: name, port: args.port }
    const socket = await openPodSocket(config, at, join(folder, `${i}.sock`))
    const printError = (line: string): void => {
      output.printError(socket.fault() === '' ? line : `Pod ${name}: ${socket.fault()}`)
    }
    try {
      const found = await run([...args.rest, `@${socket.path}`], { ...output, printError })
      code = Math.max(code, found)
    } finally {
      socket.close()
    }
  }
  return code
}

/** `what-if` with the Corefile of the servers, and the DNSRecords of the cluster. */
async function compare({ args, api, folder }: Cluster, output: Output): Promise<number> {
  const { runWhatIf } = await import('./what-if.ts')
  const given: string[] = []
  if (!args.rest.some((arg) => /^--?conf(=|$)/.test(arg))) {
    const [pod] = await findServers(api, args)
    const objects = openObjects(api)
    const text = await corefileOf(objects, args.namespace, pod!)
    objects.close()
    given.push('-conf', writeIn(folder, 'Corefile', text))
  }
  const records: ApiObject[] = []
  const lister = new Lister(api, systemTimers, `${collectionPath(RECORDS, '')}?`)
  await lister.list((page) => records.push(...page))
  const list = { apiVersion: 'v1', kind: 'List', items: records }
  given.push('--old-records', writeIn(folder, 'records.json', JSON.stringify(list)))
  return runWhatIf([...given, ...args.rest], output)
}

/** `drain` and `undrain`: edits the ConfigMap that the servers of the cluster follow (`cluster-drains`). */
async function editDrains({ args, api, folder }: Cluster, output: Output): Promise<number> {
  const { command, namespace, drains: name, rest } = args
  const { runDrain, runUndrain } = await import('./drain.ts')
  const run = command === 'drain' ? runDrain : runUndrain
  const objects = openObjects(api)
  const ref = { resource: CONFIG_MAPS, namespace, name }
  // `sextant` must not read a Corefile in the current directory.
  const conf = writeIn(folder, 'Corefile', '. {\n    whoami\n}\n')
  try {
    for (let edits = 1; ; edits++) {
      const object = await objects.get(ref)
      if (object === undefined) throw missingDrains(namespace, name)
      const before = textOf(object.data, 'drains')
      const file = writeIn(folder, 'drains', before)
      const shown: (() => void)[] = []
      const code = await run([...rest, '-conf', conf, '--file', file], {
        ...output,
        print: (line) => shown.push(() => output.print(line)),
        printError: (...line) => shown.push(() => output.printError(...line)),
      })
      const drains = readFileSync(file, 'utf8')
      const resourceVersion = textOf(object.metadata, 'resourceVersion')
      try {
        if (code === 0 && drains !== before)
          await objects.patch(ref, { metadata: { resourceVersion }, data: { drains } })
      } catch (error) {
        // Another writer was faster.
        if (isConflict(error) && edits < EDITS_MAX) continue
        throw error
      }
      for (const show of shown) show()
      return code
    }
  } finally {
    objects.close()
  }
}

function missingDrains(namespace: string, name: string): InputError {
  const place = `${namespace}/${name}`
  const cure = `create it, and add \`cluster-drains ${place}\` to kuadrant; or use --drains NAME`
  return new InputError(undefined, `the ConfigMap ${place} does not exist: ${cure}`)
}

function openObjects(api: HttpsClient): Objects {
  return new Objects({ api, timers: systemTimers, fieldManager: FIELD_MANAGER })
}

/** Returns the path of the file. */
function writeIn(folder: string, name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
