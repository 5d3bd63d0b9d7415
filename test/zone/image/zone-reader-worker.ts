import { parentPort, workerData } from 'node:worker_threads'
import { ZoneReader } from '../../../src/zone/image/reader.ts'
import { readRRset } from '../../support/zone-contents.ts'
import { wire } from '../../support/zone-names.ts'

/*
 * Reads two names of a zone image that another thread writes, over and over, until both hold the last
 * value; posts how often it looked, how many versions it saw, and how often the two differed.
 */

const { buffer, names, last, deadlineMs } = workerData as {
  buffer: SharedArrayBuffer
  names: readonly string[]
  last: number
  deadlineMs: number
}

const reader = new ZoneReader({ buffer })
const owners = names.map(wire)
const started = Date.now()
let looks = 0
let torn = 0
let versions = 0
let value = -1
parentPort!.postMessage('ready')
while (value !== last && Date.now() - started < deadlineMs) {
  const before = reader.version
  reader.refresh()
  if (reader.version !== before) versions++
  const values = owners.map((owner) => {
    const rdata = readRRset(reader, owner, 65280)?.rdata[0]
    return rdata === undefined ? -1 : Buffer.from(rdata).readUInt32BE()
  })
  if (values.some((v) => v !== values[0])) torn++
  value = values[0]!
  looks++
}
parentPort!.postMessage({ looks, torn, versions, value })
