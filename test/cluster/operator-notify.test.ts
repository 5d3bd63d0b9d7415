import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ask, questionOf } from '../../src/client/ask.ts'
import { Opcode, Rcode, RRType } from '../../src/dns/iana/index.ts'
import { equalNames, scanName } from '../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../src/dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../../src/dns/tsig/key.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { KDRNT_ZONE } from '../../src/records/local-zone.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { ExportedZone, peerRecord } from '../support/exported-zone.ts'
import { endpoint } from '../support/peer-text.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

const HOST = 'app.k.example.com'
const NAMESPACE = 'west'
const PEER = '127.0.0.1'
/** In a network of --notify-allow. */
const ALLOWED = '127.0.0.20'
const UNKNOWN_SENDER = '127.0.0.30'
/** A nameserver of another cluster, which signs its NOTIFYs. */
const SIGNING = '127.0.0.50'
/** Its Secret has that key. */
const SIGNED_NAMESPACE = 'north'
/** As a peer behind NAT: in no list. */
const ELSEWHERE = '127.0.0.40'
/** Ample, for a machine on which other tests run too. */
const SEEN_MS = 120_000
/**
 * A peer that refuses four times in a row is left alone for 12 s at least. Whatever asks it in this time is not the
 * polling; and a busy machine has all of it to get a NOTIFY through.
 */
const REFUSALS = 4
const SOONER_MS = 11_500

const SECRET = 'NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk='
const KEY = createTsigKey(
  scanName('peers.example.') ?? KDRNT_ZONE,
  HMAC_SHA256,
  Buffer.from(SECRET, 'base64'),
)

const NOTIFY = { ...questionOf(KDRNT_ZONE, RRType.SOA), opcode: Opcode.NOTIFY, edns: undefined }

/** Resolves to the rcode of the answer, or why there is none. */
async function notify(port: number, source: string, key?: TsigKey): Promise<number | string> {
  const limits = { timeoutMs: 10_000, tries: 3 }
  const answered = await ask({
    server: { host: '127.0.0.1', port },
    query: NOTIFY,
    source,
    key,
    ...limits,
  })
  return answered.kind === 'failed' ? answered.reason : answered.message.rcode
}

function recordOf(target: string): ApiObject {
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app' },
    spec: {
      rootHost: HOST,
      endpoints: [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets: [target] }],
    },
  }
}

/** A v2 peer with one endpoint, which can refuse queries for its SOA. */
class Peer {
  readonly zone = new ExportedZone(1, [peerRecord(endpoint())])
  readonly server: ScriptedServer
  /** When its SOA was asked for. */
  readonly askedMs: number[] = []
  #refuses = false
  #serial = 1

  constructor(server: ScriptedServer) {
    this.server = server
    server.script = (query, isTcp) => {
      const { type, name } = query.question!
      if (type !== RRType.SOA || !equalNames(name, KDRNT_ZONE))
        return this.zone.script(query, isTcp)
      this.askedMs.push(performance.now())
      return this.#refuses ? Rcode.SERVFAIL : this.zone.script(query, isTcp)
    }
  }

  /** Refuses until it is polled rarely; then it has a change that no peer knows. */
  async changeUnseen(target: string): Promise<void> {
    this.#refuses = true
    const before = this.askedMs.length
    await until(() => this.askedMs.length >= before + REFUSALS, 'refusals', SEEN_MS)
    this.zone.put(++this.#serial, [peerRecord(endpoint({ targets: [target] }))])
    this.#refuses = false
  }

  /** Milliseconds from the last question before this one was called to the next. */
  async askedAgain(): Promise<number> {
    const count = this.askedMs.length
    await until(() => this.askedMs.length > count, 'a question', SEEN_MS)
    return this.askedMs[count]! - this.askedMs[count - 1]!
  }
}

t.setTimeout(CLUSTER_TEST_MS)

t.test('NOTIFYs have the operator ask its peers at once', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await cluster.createNamespace(NAMESPACE)
  await cluster.createNamespace(SIGNED_NAMESPACE)
  const peer = new Peer(await ScriptedServer.open(t, () => undefined))
  const port = await freePort()
  await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
    metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
    type: 'kuadrant.io/coredns',
    stringData: { ZONES: 'k.example.com', NAMESERVERS: `${PEER}:${peer.server.port}` },
  })
  const operator = await RunningOperator.start(t, {
    kubeconfig: cluster.kubeconfig('admin'),
    args: [
      `--watch-namespaces=${NAMESPACE},${SIGNED_NAMESPACE}`,
      '--site=west',
      `--notify-bind-address=127.0.0.1:${port}`,
      `--notify-allow=${ALLOWED}/32`,
      // Both namespaces have the same host.
      `--share-hosts=. ${SIGNED_NAMESPACE}`,
    ],
  })
  await cluster.must('POST', cluster.records(NAMESPACE), recordOf('192.0.2.250'))
  const merges = (target: string, namespace = NAMESPACE): Promise<void> => {
    const isThere = async (): Promise<boolean> => {
      const { status, body } = await cluster.call('GET', cluster.records(namespace, 'merged-app'))
      return status === 200 && JSON.stringify(body.spec).includes(`"${target}"`)
    }
    return until(isThere, `${target} to be merged`, SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}:\n${operator.output}`)
    })
  }
  const count = async (outcome: string): Promise<number> =>
    (await operator.metric(`sextant_operator_notifies_total{outcome="${outcome}"}`)) ?? -1
  /** Waits for more of that outcome: a NOTIFY is sent again where the machine is too busy to answer at once. */
  const counts = (outcome: string, before: number): Promise<void> =>
    until(async () => (await count(outcome)) > before, `more to be ${outcome}`, SEEN_MS)
  await merges('192.0.2.1')

  await t.test('directly, from the address of the peer', async (t) => {
    await peer.changeUnseen('192.0.2.2')
    const again = peer.askedAgain()
    t.equal(await notify(port, PEER), Rcode.NOERROR)
    const tookMs = await again
    t.ok(tookMs < SOONER_MS, `asked again after ${tookMs} ms`)
    await merges('192.0.2.2')
    await counts('hastened', 0)
  })

  await t.test('from a network of --notify-allow', async (t) => {
    const before = await count('hastened')
    await peer.changeUnseen('192.0.2.3')
    const again = peer.askedAgain()
    t.equal(await notify(port, ALLOWED), Rcode.NOERROR)
    const tookMs = await again
    t.ok(tookMs < SOONER_MS, `asked again after ${tookMs} ms`)
    await merges('192.0.2.3')
    await counts('hastened', before)
  })

  await t.test('not for other senders', async (t) => {
    const before = await count('hastened')
    t.equal(await notify(port, UNKNOWN_SENDER), Rcode.REFUSED)
    await counts('stranger', 0)
    t.equal(await count('hastened'), before)
    await operator.prints(/NOTIFY of 127\.0\.0\.30 is refused/)
  })

  await t.test('signed by the server of the peer, from any address', async (t) => {
    const tsig = `tsig {
        secret peers.example. ${SECRET}
        require AXFR IXFR
    }`
    const theirs = await startServer(t, {
      corefile: `kdrnt:{PORT} {
    bind ${SIGNING}
    ${tsig}
    transfer {
        to * 127.0.0.1:${port}
        key peers.example.
    }
    kuadrant {
        manifests records
        site berlin
    }
}
`,
      files: { 'records/app.json': JSON.stringify(recordOf('192.0.2.4')) },
    })
    await cluster.must('POST', `/api/v1/namespaces/${SIGNED_NAMESPACE}/secrets`, {
      metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
      type: 'kuadrant.io/coredns',
      stringData: {
        ZONES: 'k.example.com',
        NAMESERVERS: `${SIGNING}:${theirs.port}`,
        TSIG_NAME: 'peers.example.',
        TSIG_SECRET: SECRET,
      },
    })
    await cluster.must('POST', cluster.records(SIGNED_NAMESPACE), recordOf('192.0.2.251'))
    await merges('192.0.2.4', SIGNED_NAMESPACE)
    const untrusted = { stranger: await count('stranger'), bad: await count('bad_signature') }
    const before = await count('hastened')
    const file = join(theirs.directory, 'records/app.json')
    writeFileSync(`${file}.new`, JSON.stringify(recordOf('192.0.2.5')))
    renameSync(`${file}.new`, file)
    await merges('192.0.2.5', SIGNED_NAMESPACE)
    const isHastened = async () => (await count('hastened')) > before
    await until(isHastened, 'the NOTIFY to arrive', SEEN_MS).catch((error: Error) => {
      const outputs = [theirs.output(), operator.output]
      throw new Error(`${error.message}:\n${outputs.join('\n')}`)
    })
    const after = { stranger: await count('stranger'), bad: await count('bad_signature') }
    t.strictSame(after, untrusted, 'none came unsigned, or with another key')
    const beforeOther = await count('hastened')
    t.equal(await notify(port, ELSEWHERE, KEY), Rcode.NOERROR)
    await counts('hastened', beforeOther)
  })

  t.equal(await operator.stop(), 0)
})
