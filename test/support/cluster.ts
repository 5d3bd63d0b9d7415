import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import type { Test } from 'tap'
import { parseAllDocuments } from 'yaml'
import { findClusterBinaries } from './cluster-binary.ts'
import { getText } from './get-text.ts'
import { freePort, root } from './server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

/** Ample, for a machine on which other tests run too. */
const START_MS_MAX = 300_000
/** How often a program is started that ends as it starts. */
const STARTS_MAX = 5
/** HTTP status. */
const TOO_MANY = 429
/** Of a whole file of tests, whose API servers take ten seconds each where nothing else runs; to be given to `t.setTimeout`. */
export const CLUSTER_TEST_MS = 1_200_000

/** Users of the cluster, each with a token: `admin` may do everything, the others what a test grants. */
export type ClusterUser = 'admin' | 'viewer' | 'stranger'

/** An answer of the API server. */
export interface ApiReply {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: whatever the API says
  readonly body: any
}

export interface CallOptions {
  readonly user?: ClusterUser
  readonly accept?: string
  /** Of the body; by default JSON, and a merge patch for PATCH. */
  readonly contentType?: string
}

type ProgramName = 'etcd' | 'apiServer'

const RECORDS = '/apis/kuadrant.io/v1alpha1'

/** A kube-apiserver and its etcd on 127.0.0.1, gone when the test ends. */
export class Cluster {
  readonly directory: string
  readonly #port: number
  readonly #etcdPort: number
  readonly #peerPort: number
  readonly #processes = new Map<ProgramName, Program>()
  readonly #serverArgs: readonly string[]
  #printed = ''

  private constructor(
    directory: string,
    [port, etcdPort, peerPort]: [number, number, number],
    serverArgs: readonly string[],
  ) {
    this.directory = directory
    this.#serverArgs = serverArgs
    this.#port = port
    this.#etcdPort = etcdPort
    this.#peerPort = peerPort
  }

  /** `serverArgs`: further arguments of kube-apiserver. */
  static async start(t: Test, serverArgs: readonly string[] = []): Promise<Cluster> {
    const directory = temporaryDirectory(t)
    const ports = [await freePort(), await freePort(), await freePort()] as [number, number, number]
    const cluster = new Cluster(directory, ports, serverArgs)
    t.teardown(() => cluster.stop())
    cluster.#writeCredentials()
    await cluster.#startEtcd()
    await cluster.startServer()
    return cluster
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}`
  }

  /** Its certificate, made by itself. */
  get caFile(): string {
    return join(this.directory, 'certs/apiserver.crt')
  }

  async startServer(): Promise<void> {
    const file = (name: string) => join(this.directory, name)
    const args = [
      `--etcd-servers=http://127.0.0.1:${this.#etcdPort}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${this.#port}`,
      `--cert-dir=${file('certs')}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${file('sa.pub')}`,
      `--service-account-signing-key-file=${file('sa.key')}`,
      `--token-auth-file=${file('tokens.csv')}`,
      '--authorization-mode=RBAC',
      '--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112',
      ...this.#serverArgs,
    ]
    const isReady = async () => {
      const reply = await this.call('GET', '/readyz').catch(() => undefined)
      return reply?.status === 200
    }
    await this.#start('apiServer', args, isReady)
  }

  /** Kills the API server as a crash would; its data stay in etcd. */
  async killServer(): Promise<void> {
    await this.#kill('apiServer')
  }

  /** Has etcd forget all versions but the newest. */
  async compact(): Promise<void> {
    const etcd = `http://127.0.0.1:${this.#etcdPort}/v3/kv`
    const key = Buffer.from('none').toString('base64')
    const range = await fetch(`${etcd}/range`, { method: 'POST', body: JSON.stringify({ key }) })
    const { header } = (await range.json()) as { header: { revision: string } }
    const body = JSON.stringify({ revision: header.revision, physical: true })
    const done = await fetch(`${etcd}/compaction`, { method: 'POST', body })
    if (!done.ok) throw new Error(`etcd does not forget: ${await done.text()}`)
  }

  /** Stops both, copies their data, and starts both again. */
  async backUp(): Promise<void> {
    await this.stop()
    cpSync(join(this.directory, 'etcd'), join(this.directory, 'backup'), { recursive: true })
    await this.restart()
  }

  /** Stops both and puts the backup in the place of their data. */
  async restore(): Promise<void> {
    await this.stop()
    rmSync(join(this.directory, 'etcd'), { recursive: true })
    cpSync(join(this.directory, 'backup'), join(this.directory, 'etcd'), { recursive: true })
    await this.restart()
  }

  async restart(): Promise<void> {
    await this.#startEtcd()
    await this.startServer()
  }

  async stop(): Promise<void> {
    await this.#kill('apiServer')
    await this.#kill('etcd')
  }

  /** A kubeconfig of that user. Two contexts: `main`, the current one, and `elsewhere`, where no server listens. */
  kubeconfig(user: ClusterUser): string {
    const path = join(this.directory, `${user}.kubeconfig`)
    // At one stroke: others may be reading it.
    writeFileSync(
      `${path}.new`,
      `apiVersion: v1
kind: Config
current-context: main
clusters:
- {name: here, cluster: {server: "${this.url}", certificate-authority: "${this.caFile}"}}
- {name: nowhere, cluster: {server: "https://127.0.0.1:1"}}
users:
- {name: "${user}", user: {token: "${tokenOf(user)}"}}
contexts:
- {name: main, context: {cluster: here, user: "${user}"}}
- {name: elsewhere, context: {cluster: nowhere, user: "${user}"}}
`,
    )
    renameSync(`${path}.new`, path)
    return path
  }

  /** One request to the API; `body`: JSON. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    { user = 'admin', accept = 'application/json', contentType }: CallOptions = {},
  ): Promise<ApiReply> {
    const byMethod = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const text = body === undefined ? '' : JSON.stringify(body)
    const headers = {
      accept,
      authorization: `Bearer ${tokenOf(user)}`,
      'content-type': contentType ?? byMethod,
      // For DELETE, Node does not send it on its own.
      'content-length': Buffer.byteLength(text),
    }
    const ca = readFileSync(this.caFile)
    return new Promise((resolve, reject) => {
      const sent = request(`${this.url}${path}`, { method, headers, ca, agent: false }, (reply) => {
        const chunks: Buffer[] = []
        reply.on('data', (chunk) => chunks.push(chunk))
        reply.on('error', reject)
        reply.on('end', () => {
          const got = Buffer.concat(chunks).toString()
          const isJson = reply.headers['content-type']?.startsWith('application/json') === true
          resolve({ status: reply.statusCode ?? 0, body: isJson ? JSON.parse(got) : got })
        })
      })
      sent.on('error', reject)
      sent.end(text)
    })
  }

  /**
   * As `call`, but what is refused is an error. Asks again while the server says that there are too many requests, as it
   * does before it has the storage of a new definition.
   */
  async must(
    method: string,
    path: string,
    body?: unknown,
    accept = 'application/json',
  ): Promise<ApiReply['body']> {
    let reply = await this.call(method, path, body, { accept })
    const isAccepted = async (): Promise<boolean> => {
      if (reply.status === TOO_MANY) reply = await this.call(method, path, body, { accept })
      return reply.status !== TOO_MANY
    }
    await until(isAccepted, `${method} ${path}`)
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }

  /** Installs our CustomResourceDefinitions and waits until they are served. */
  async installCrds(): Promise<void> {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    for (const plural of ['dnsrecords', 'dnshealthcheckprobes']) {
      await this.must('POST', path, readCrd(plural))
    }
    await this.servesCrds()
  }

  /** Waits until our kinds are served: what the API server makes of a definition takes it a moment. */
  async servesCrds(): Promise<void> {
    for (const plural of ['dnsrecords', 'dnshealthcheckprobes']) {
      const isServed = async () => (await this.call('GET', `${RECORDS}/${plural}`)).status === 200
      await until(isServed, plural, START_MS_MAX)
    }
  }

  async createNamespace(name: string): Promise<void> {
    await this.must('POST', '/api/v1/namespaces', { metadata: { name } })
  }

  /** Lets `user` read records and probes: in one namespace, or '' = everywhere. */
  async grant(user: ClusterUser, namespace = ''): Promise<void> {
    const scope = namespace === '' ? '' : `/namespaces/${namespace}`
    const kind = namespace === '' ? 'ClusterRole' : 'Role'
    const api = `/apis/rbac.authorization.k8s.io/v1${scope}`
    const rules = [
      {
        apiGroups: ['kuadrant.io'],
        resources: ['dnsrecords', 'dnshealthcheckprobes'],
        verbs: ['get', 'list', 'watch'],
      },
    ]
    const metadata = { name: `reader-${user}` }
    await this.must('POST', `${api}/${kind.toLowerCase()}s`, { metadata, rules })
    await this.must('POST', `${api}/${kind.toLowerCase()}bindings`, {
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: metadata.name },
      subjects: [{ kind: 'User', name: user }],
    })
  }

  /** Path of the records of a namespace, or of one of them. */
  records(namespace: string, name = '', plural = 'dnsrecords'): string {
    return `${RECORDS}/namespaces/${namespace}/${plural}${name === '' ? '' : `/${name}`}`
  }

  #writeCredentials(): void {
    mkdirSync(join(this.directory, 'certs'), { recursive: true })
    const { publicKey, privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    })
    const lines = [
      `${tokenOf('admin')},admin,1,system:masters`,
      `${tokenOf('viewer')},viewer,2`,
      `${tokenOf('stranger')},stranger,3`,
    ]
    const files = { 'sa.pub': publicKey, 'sa.key': privateKey, 'tokens.csv': lines.join('\n') }
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(this.directory, name), text, { mode: 0o600 })
    }
  }

  async #startEtcd(): Promise<void> {
    const client = `http://127.0.0.1:${this.#etcdPort}`
    const peer = `http://127.0.0.1:${this.#peerPort}`
    const args = [
      `--data-dir=${join(this.directory, 'etcd')}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      '--unsafe-no-fsync',
    ]
    const isHealthy = async () =>
      (await getText(`${client}/health`).catch(() => undefined))?.status === 200
    await this.#start('etcd', args, isHealthy)
  }

  /**
   * Starts a program and waits until it is there. As a kubelet would, it starts it again where it ends: an API server does
   * that on a machine that is too busy to have it make its own roles in 30 s.
   */
  async #start(
    name: ProgramName,
    args: readonly string[],
    isThere: () => Promise<boolean>,
  ): Promise<void> {
    let starts = 0
    const isStarted = async () => {
      const isRunning = this.#processes.get(name)?.isOver === false
      if (!isRunning && starts++ < STARTS_MAX) this.#spawn(name, args)
      return starts > STARTS_MAX || (await isThere())
    }
    await until(isStarted, name, START_MS_MAX).catch((error: Error) => {
      throw new Error(`${error.message}:\n${this.#printed}`)
    })
    if (starts > STARTS_MAX) throw new Error(`${name} did not start:\n${this.#printed}`)
  }

  #spawn(name: ProgramName, args: readonly string[]): void {
    const binaries = findClusterBinaries()
    if (binaries === undefined) throw new Error('no API server: run test/cluster/build')
    const [program, ...first] = binaries[name]
    const child = spawn(program, [...first, ...args], {
      cwd: this.directory,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const keep = (chunk: Buffer): void => {
      this.#printed = (this.#printed + String(chunk)).slice(-20_000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    this.#processes.set(name, new Program(child))
  }

  async #kill(name: ProgramName): Promise<void> {
    const program = this.#processes.get(name)
    this.#processes.delete(name)
    await program?.kill()
  }
}

/** A process, however it ends. */
class Program {
  isOver = false
  readonly #child: ChildProcess
  readonly #end: Promise<void>

  constructor(child: ChildProcess) {
    this.#child = child
    this.#end = once(child, 'exit').then(() => {
      this.isOver = true
    })
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#end
  }
}

/** The CustomResourceDefinition of `plural` as the repository has it. */
// biome-ignore lint/suspicious/noExplicitAny: a schema is any mapping
export function readCrd(plural: string): any {
  const text = readFileSync(join(root, `crds/${plural}.yaml`), 'utf8')
  return parseAllDocuments(text)[0]?.toJS()
}

function tokenOf(user: ClusterUser): string {
  return `token-of-${user}`
}
