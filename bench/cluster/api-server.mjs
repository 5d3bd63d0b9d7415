// A kube-apiserver and its etcd over a directory that keeps their data from one run to the next.
import { createHash, generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parse } from 'yaml'
import { freePort } from '../peers/ports.mjs'
import { startProcess } from '../peers/server-process.mjs'

const ROOT = new URL('../..', import.meta.url).pathname
const START_MS_MAX = 120_000
const TOKEN = 'token-of-admin'
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** Both programs in one, as `test/cluster/build` makes it. */
function binary() {
  const hash = createHash('sha256')
  for (const file of ['go.mod', 'go.sum', 'main.go']) {
    hash.update(readFileSync(join(ROOT, 'test/cluster', file)))
  }
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const path = join(cache, 'sextant', `cluster-${hash.digest('hex').slice(0, 16)}`)
  if (!existsSync(path)) throw new Error('no API server: run test/cluster/build')
  return path
}

export async function startApiServer(directory) {
  const file = (name) => join(directory, name)
  mkdirSync(file('certs'), { recursive: true })
  if (!existsSync(file('sa.key'))) writeCredentials(file)
  const [port, etcdPort, peerPort] = [await freePort(), await freePort(), await freePort()]
  const [client, peer] = [`http://127.0.0.1:${etcdPort}`, `http://127.0.0.1:${peerPort}`]
  const etcd = startProcess('etcd', binary(), [
    'etcd',
    `--data-dir=${file('etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    '--force-new-cluster',
    '--unsafe-no-fsync',
  ])
  await wait(etcd, async () => (await fetch(`${client}/health`)).ok)
  const server = startProcess('kube-apiserver', binary(), [
    'kube-apiserver',
    `--etcd-servers=${client}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${file('certs')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('sa.pub')}`,
    `--service-account-signing-key-file=${file('sa.key')}`,
    `--token-auth-file=${file('tokens.csv')}`,
    '--authorization-mode=RBAC',
    '--service-cluster-ip-range=10.0.0.0/24',
  ])
  const api = new Api(port, file('certs/apiserver.crt'))
  await wait(server, async () => (await api.call('GET', '/readyz')).status === 200)
  const stop = async () => {
    await server.stop()
    await etcd.stop()
  }
  return { api, stop, pid: server.pid, kubeconfig: writeKubeconfig(file, api.url) }
}

function writeCredentials(file) {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  writeFileSync(file('sa.pub'), publicKey)
  writeFileSync(file('sa.key'), privateKey, { mode: 0o600 })
  writeFileSync(file('tokens.csv'), `${TOKEN},admin,1,system:masters\n`, { mode: 0o600 })
}

function writeKubeconfig(file, url) {
  const path = file('kubeconfig')
  writeFileSync(
    path,
    `current-context: main
clusters: [{name: c, cluster: {server: "${url}", certificate-authority: certs/apiserver.crt}}]
users: [{name: u, user: {token: ${TOKEN}}}]
contexts: [{name: main, context: {cluster: c, user: u}}]
`,
  )
  return path
}

async function wait(server, isReady) {
  const deadline = performance.now() + START_MS_MAX
  while (!(await isReady().catch(() => false))) {
    if (server.failure !== undefined) throw new Error(server.failure)
    if (performance.now() > deadline) throw new Error(`${server.name} does not start`)
    await delay(100)
  }
}

/** Calls as its administrator. */
class Api {
  #agent = new Agent({ keepAlive: true })
  #caFile

  constructor(port, caFile) {
    this.url = `https://127.0.0.1:${port}`
    this.#caFile = caFile
  }

  call(method, path, body) {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': type }
    this.ca ??= readFileSync(this.#caFile)
    const options = { method, headers, ca: this.ca, agent: this.#agent }
    return new Promise((resolve, reject) => {
      const sent = request(this.url + path, options, (reply) => {
        let text = ''
        reply.on('data', (chunk) => {
          text += chunk
        })
        reply.on('end', () => resolve({ status: reply.statusCode, text }))
        reply.on('error', reject)
      })
      sent.on('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  /** As `call`, but what is refused is an error, other than that it is there. */
  async must(method, path, body) {
    const { status, text } = await this.call(method, path, body)
    if (status >= 300 && status !== 409) throw new Error(`${method} ${path}: ${text}`)
  }

  async installCrds() {
    for (const plural of ['dnsrecords', 'dnshealthcheckprobes']) {
      const definition = parse(readFileSync(join(ROOT, `crds/${plural}.yaml`), 'utf8'))
      await this.must('POST', DEFINITIONS, definition)
      const isServed = async () =>
        (await this.call('GET', `/apis/kuadrant.io/v1alpha1/${plural}`)).status === 200
      while (!(await isServed())) await delay(100)
    }
  }
}
