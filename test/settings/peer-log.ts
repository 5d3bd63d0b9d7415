import t from 'tap'
import { Rcode } from '../../src/dns/iana/index.ts'
import { PeerFollower } from '../../src/peering/peer.ts'
import { Refusals } from '../../src/peering/refusals.ts'
import { ExportedZone } from '../support/exported-zone.ts'
import { recordLog } from '../support/recorded-log.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

let ofV1: Promise<readonly string[]> | undefined

/** What a server logs of a peer that speaks v1 only: the same for every row. */
export function linesOfV1(): Promise<readonly string[]> {
  ofV1 ??= followV1()
  return ofV1
}

async function followV1(): Promise<readonly string[]> {
  const zone = new ExportedZone(1, [])
  zone.transferRcode = Rcode.REFUSED
  const server = await ScriptedServer.open(t, zone.script)
  const { host, port } = server
  const { lines, log } = recordLog()
  const parts = { clock: new FakeClock(), timers: new FakeTimers(), log, random: () => 0 }
  const follower = new PeerFollower({ peer: { host, port }, ...parts })
  follower.start()
  await follower.answered()
  follower.close()
  await server.stop()
  return lines
}

/** What a server logs of what it refuses of a peer. */
export function linesOfRefusals(problems: readonly string[]): readonly string[] {
  const { lines, log } = recordLog()
  new Refusals({ peer: '192.0.2.53:53', log, clock: new FakeClock() }).note('', problems)
  return lines
}
