import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { ZoneReader } from '../../../src/zone/image/reader.ts'
import { chainOwners } from '../../support/zone-chains.ts'
import { readRRset } from '../../support/zone-contents.ts'
import { wire } from '../../support/zone-names.ts'

/*
 * Reads the chain of a zone that another thread writes, over and over, until the last version; posts how many versions
 * and arenas it saw, and where a chain was not as a record at the apex says: number of the version, numbers of owners.
 */

const { buffer, apex, type, last, deadlineMs } = workerData as {
  buffer: SharedArrayBuffer
  apex: string
  type: number
  last: number
  deadlineMs: number
}

const handle = { buffer }
const reader = new ZoneReader(handle)
const zone = wire(apex)
const started = Date.now()
const wrong: string[] = []
let versions = 0
let swaps = 0
let seen = -1
parentPort!.postMessage('ready')
while (seen !== last && wrong.length === 0 && Date.now() - started < deadlineMs) {
  const moved = receiveMessageOnPort(parentPort!)
  if (moved !== undefined) {
    handle.buffer = moved.message as SharedArrayBuffer
    swaps++
  }
  reader.refresh()
  const rdata = readRRset(reader, zone, type)?.rdata[0]
  if (rdata === undefined) continue
  const [version, ...numbers] = new Uint32Array(rdata.slice().buffer)
  if (version !== seen) versions++
  seen = version!
  const want = numbers.map((n) => `n${n}.`)
  const owners = chainOwners(reader, zone)
  if (owners.join() !== ['.', ...want].join()) {
    wrong.push(`version ${version}: ${owners.length} owners, not ${want.length + 1}`)
  }
}
parentPort!.postMessage({ versions, swaps, seen, wrong })
