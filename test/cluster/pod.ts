import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Cluster } from '../support/cluster.ts'
import { getText } from '../support/get-text.ts'
import { type Manifest, manifestOf } from '../support/kustomize.ts'
import { run } from '../support/peer.ts'
import { freePort, root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

/** A container of a Deployment as a process of this machine; gone when the test ends. */
export interface RunningPod {
  /** Everything it printed so far, both streams. */
  output(): string
  /** Waits for 200 where its readiness probe looks. */
  isReady(): Promise<void>
  /** What dig prints. */
  dig(...args: readonly string[]): Promise<string>
  /** Replaces the Corefile of its ConfigMap volume, as a kubelet does. */
  editCorefile(edit: (text: string) => string): void
  /** Names of the files that it keeps. */
  state(): string[]
}

/** Ample, for a machine on which other tests run too. */
const START_MS_MAX = 300_000
export const STATE = '/var/lib/sextant'

/**
 * What a kubelet would do: a mount namespace in which all is read-only but the volume, the service account's token
 * where pods have it, the user of the manifest, no capability. `$0`: the repository; `$1`: the pod's directory; `$2`:
 * its user; `$3`: Node; then its arguments.
 */
const KUBELET = `set -e
mount --make-rprivate /
pod=$1; user=$2; node=$pod/bin/$(basename "$3")
mount --bind "$0" "$pod/app"
mount --bind "$(dirname "$3")" "$pod/bin"
shift 3
mount -t tmpfs tmpfs /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
cp "$pod"/account/* /run/secrets/kubernetes.io/serviceaccount
mount -o remount,ro /run
chown "$user" "$pod/state"
mount --bind "$pod/state" "$pod/state"
mount -o remount,bind,ro "$pod/app"
mount -o remount,bind,ro /
cd "$pod/app"
exec setpriv --reuid="$user" --regid="$user" --clear-groups --bounding-set=-all --inh-caps=-all \\
  --no-new-privs "$node" dist/main.js "$@"
`

/** Runs the only container of the Deployment `sextant-<component>`, on free ports in the place of its own. */
export async function startPod(
  t: Test,
  cluster: Cluster,
  manifests: readonly Manifest[],
  component: string,
): Promise<RunningPod> {
  const name = `sextant-${component}`
  const { metadata, spec: deployment } = manifestOf(manifests, 'Deployment', name)
  const namespace = metadata.namespace!
  const { spec } = deployment.template
  const [container] = spec.containers
  const directory = temporaryDirectory(t)
  chmodSync(directory, 0o755)
  for (const folder of ['app', 'account', 'state', 'bin']) mkdirSync(join(directory, folder))
  await layAccount(cluster, namespace, spec.serviceAccountName, join(directory, 'account'))
  const ports = new Map<number, number>()
  for (const { containerPort } of container.ports) ports.set(containerPort, await freePort())
  const fit = (text: string) =>
    text.replace(/:(\d+)\b/g, (all, port) =>
      ports.has(Number(port)) ? `:${ports.get(Number(port))}` : all,
    )
  const config = new ConfigVolume(join(directory, 'config'))
  if (spec.volumes !== undefined) {
    const { Corefile } = manifestOf(manifests, 'ConfigMap', name).data
    config.write(fit(Corefile.replaceAll(STATE, join(directory, 'state'))))
  }
  const args = container.args.map((arg: string) =>
    arg === '/etc/sextant/Corefile' ? config.file : arg,
  )
  const { port } = new URL(cluster.url)
  const env = {
    ...environmentOf(manifests, namespace, container),
    // What the operator listens on by default.
    METRICS_BIND_ADDRESS: fit(':8080'),
    HEALTH_PROBE_BIND_ADDRESS: fit(':8081'),
    KUBERNETES_SERVICE_HOST: '127.0.0.1',
    KUBERNETES_SERVICE_PORT: port,
    PATH: process.env.PATH,
  }
  const user = String(spec.securityContext.runAsUser)
  const kubelet = ['-m', 'sh', '-c', KUBELET, root, directory, user, process.execPath, ...args]
  const child = spawn('unshare', kubelet, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = gather(t, child)
  const portOf = (wanted: number) => String(ports.get(wanted) ?? 0)
  const { path, port: named } = container.readinessProbe.httpGet
  const { containerPort } = container.ports.find((one: { name: string }) => one.name === named)
  const probe = `http://127.0.0.1:${portOf(containerPort)}${path}`
  const answers = async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended:\n${output()}`)
    return (await getText(probe).catch(() => undefined))?.status === 200
  }
  return {
    output,
    isReady: () =>
      until(answers, name, START_MS_MAX).catch((error: Error) => {
        throw new Error(`${error.message}:\n${output()}`)
      }),
    dig: async (...words) => {
      const { stdout } = await run('dig', ['@127.0.0.1', '-p', portOf(1053), ...words])
      return stdout
    },
    editCorefile: (edit) => config.write(edit(readFileSync(config.file, 'utf8'))),
    state: () => readdirSync(join(directory, 'state')),
  }
}

/** A ConfigMap volume with a Corefile. A kubelet replaces all of its files at once, by renaming one symbolic link. */
export class ConfigVolume {
  readonly file: string
  readonly #folder: string
  #writes = 0

  constructor(folder: string) {
    this.#folder = folder
    this.file = join(folder, 'Corefile')
  }

  write(corefile: string): void {
    const version = `..${++this.#writes}`
    mkdirSync(join(this.#folder, version), { recursive: true })
    writeFileSync(join(this.#folder, version, 'Corefile'), corefile)
    symlinkSync(version, join(this.#folder, '..data_tmp'))
    renameSync(join(this.#folder, '..data_tmp'), join(this.#folder, '..data'))
    if (this.#writes === 1) symlinkSync('..data/Corefile', this.file)
  }
}

/** Puts what a pod finds at /var/run/secrets into `directory`. */
async function layAccount(
  cluster: Cluster,
  namespace: string,
  account: string,
  directory: string,
): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
  const { status } = await cluster.must('POST', path, { spec: {} })
  const files = { token: status.token, 'ca.crt': readFileSync(cluster.caFile), namespace }
  for (const [file, text] of Object.entries(files)) writeFileSync(join(directory, file), text)
}

/** The variables of a container, where they come from the manifests themselves. */
export function environmentOf(
  manifests: readonly Manifest[],
  namespace: string,
  container: Manifest['spec'],
): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const { name, value, valueFrom } of container.env ?? []) {
    const { configMapKeyRef: config, secretKeyRef: secret, fieldRef: field } = valueFrom ?? {}
    if (config) variables[name] = manifestOf(manifests, 'ConfigMap', config.name).data[config.key]
    else if (secret) {
      variables[name] = manifestOf(manifests, 'Secret', secret.name).stringData[secret.key]
    } else if (field) variables[name] = namespace
    else variables[name] = value
  }
  return variables
}

/** What a process prints, both streams; ends it with the test. */
function gather(t: Test, child: ChildProcess): () => string {
  let printed = ''
  child.stdout?.on('data', (chunk) => (printed += String(chunk)))
  child.stderr?.on('data', (chunk) => (printed += String(chunk)))
  const exit = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
  })
  return () => printed
}
