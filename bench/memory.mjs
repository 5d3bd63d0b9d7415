// Claims: what `peer-cache FILE` takes: how long its file is written, how long that holds the thread at a time, and how
// long a start reads it. By hand:
//   npm run build && node bench/memory.mjs [rounds]

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../dist/base/clock.js'
import { PeerCache } from '../dist/peering/cache/peer-cache.js'
import { PeerFollower } from '../dist/peering/peer.js'
import { toPeerEndpoint } from '../dist/peering/to-peer-endpoint.js'
import { composePeerEndpoint } from '../dist/peering/v2-codec.js'
import { printSteering } from '../dist/records/print-endpoint.js'
import { validateEndpoint } from '../dist/records/validate/dns-record.js'

const [rounds = 7] = process.argv.slice(2).map(Number)
const PEERS = 3
const log = { info() {}, warning: console.error, error: console.error, debug() {} }
/** Nothing is waited for. */
const timers = {
  after(_ms, run) {
    const immediate = setImmediate(run)
    return () => clearImmediate(immediate)
  },
  every: () => () => {},
}
const parts = { clock: systemClock, timers, log }

/** What Kuadrant's DNSPolicy makes of a gateway: a GEO step, a weight step, an address. */
function layout(site, rootHost, n) {
  const geo = n % 2 === 0 ? 'GEO-EU' : 'GEO-NA'
  const place = `${geo.toLowerCase()}.klb.${rootHost}`
  const leaf = `${site}.klb.${rootHost}`
  const facts = { site, rootHost, health: 'unknown', sinceSeconds: 1_780_000_000 }
  const unsteered = { setIdentifier: '', weight: undefined, geoCodes: [], isDefault: false }
  const endpoint = (dnsName, recordType, target, steering = {}) => {
    const object = { dnsName, recordType, recordTTL: 60, targets: [target] }
    const steered = { ...object, ...printSteering({ ...unsteered, ...steering }) }
    return toPeerEndpoint(validateEndpoint(steered, rootHost).endpoint, facts)
  }
  return [
    endpoint(rootHost, 'CNAME', `klb.${rootHost}`),
    endpoint(`klb.${rootHost}`, 'CNAME', place, { setIdentifier: geo, geoCodes: [geo] }),
    endpoint(place, 'CNAME', leaf, { setIdentifier: leaf, weight: 120 }),
    endpoint(leaf, 'A', `10.0.${n}.1`),
  ]
}

/** All that a peer told, in the one way or the other. */
function keptOf(n, hosts, generation) {
  const address = `127.0.0.${n + 1}:5300`
  const site = generation === 'v1' ? address : `site-${n}`
  const seenMs = systemClock.monotonic()
  const zone = new Map()
  const asked = []
  for (let i = 0; i < hosts; i++) {
    const host = `app-${i}.k.example.com`
    const endpoints = layout(generation === 'v1' ? `site-${n}` : site, host, n + 1)
    if (generation === 'v2') {
      const rdata = endpoints.map((one) => Buffer.from(composePeerEndpoint(one)).toString('latin1'))
      zone.set(host, new Set(rdata))
      continue
    }
    const told = endpoints.map((one) => ({ ...one, site }))
    const from = { site, teller: address, isOwn: true, rootHost: host }
    asked.push([host, [{ ...from, endpoints: told, seenMs, generation }]])
  }
  const times = { seenMs, zoneSeenMs: seenMs, serial: 1 }
  const own = generation === 'v2' ? site : ''
  return { address, keyName: '', generation, ...times, ownSite: own, zone, hosts: asked }
}

function follow(n) {
  const peer = { host: `127.0.0.${n + 1}`, port: 5300 }
  return new PeerFollower({ peer, ...parts, random: () => 0 })
}

/** Longest time that the thread was held, until the returned function is called. */
function watchLoop() {
  let longestMs = 0
  let lastMs = performance.now()
  let isOver = false
  const tick = () => {
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - lastMs)
    lastMs = nowMs
    if (!isOver) setImmediate(tick)
  }
  setImmediate(tick)
  return () => {
    isOver = true
    return longestMs
  }
}

/** As much of a follower as is written. */
class ToldFollower {
  isUp = true
  #kept
  #listener = () => {}

  constructor(kept) {
    this.#kept = kept
  }

  get identity() {
    return this.#kept.address
  }

  keep() {
    return this.#kept
  }

  subscribe(listener) {
    this.#listener = listener
    return () => {}
  }

  change() {
    this.#listener()
  }
}

/** Milliseconds, and the longest that the thread was held. */
async function timeWrite(memory, change) {
  const stop = watchLoop()
  const startMs = performance.now()
  change()
  while (memory.status.ageMs === undefined) await new Promise((resume) => setImmediate(resume))
  return [performance.now() - startMs, stop()]
}

const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1]
const show = (list) => `${median(list).toFixed(1)} ms, ${Math.max(...list).toFixed(1)} worst`

for (const [name, hosts, generation] of [
  ['1 000 hosts', 1000, 'v2'],
  ['100 000 endpoints', 8334, 'v2'],
  ['1 000 hosts, asked one by one', 1000, 'v1'],
  ['100 000 endpoints, asked one by one', 8334, 'v1'],
]) {
  const directory = mkdtempSync(join(tmpdir(), 'bench-memory-'))
  const path = join(directory, 'peers')
  const [writes, holds, reads, recalls] = [[], [], [], []]
  const kept = Array.from({ length: PEERS }, (_, n) => keptOf(n, hosts, generation))
  let octets = 0
  for (let round = 0; round < rounds; round++) {
    rmSync(path, { force: true })
    const memory = new PeerCache({ path, site: 'here', ...parts })
    const followers = kept.map((one) => new ToldFollower(one))
    for (const follower of followers) memory.keep(follower, 24 * 3600 * 1000)
    globalThis.gc?.()
    const [ms, holdMs] = await timeWrite(memory, () => followers[0].change())
    writes.push(ms)
    holds.push(holdMs)
    octets = memory.status.octets
    const startMs = performance.now()
    const next = new PeerCache({ path, site: 'here', ...parts })
    reads.push(performance.now() - startMs)
    const recallMs = performance.now()
    for (let n = 0; n < PEERS; n++) next.recall(follow(n))
    recalls.push(performance.now() - recallMs)
  }
  rmSync(directory, { recursive: true })
  console.log(
    `${PEERS} peers, ${name}, ${PEERS * hosts * 4} endpoints, ${(octets / 1e6).toFixed(1)} MB`,
  )
  console.log(`  written in ${show(writes)}; the thread is held for ${show(holds)}`)
  console.log(`  read in ${show(reads)}; taken up in ${show(recalls)}`)
}
