import t from 'tap'
import { findLostCommands } from '../../../src/plugins/kuadrant/check-commands.ts'
import { recordOf } from '../../health/stage.ts'

const POSITION = { file: 'zones/a.yaml', line: 7 }

t.test('commands that the Corefile lacks', async (t) => {
  const checked = (name: string, command: string) =>
    recordOf(name, ['192.0.2.1'], { healthCheck: { protocol: 'EXEC', command } })
  const plain = recordOf('plain', ['192.0.2.1'], { healthCheck: { protocol: 'TCP' } })
  const records = [checked('a', 'known'), checked('b', 'lost'), plain, recordOf('c', ['192.0.2.1'])]
  const commands = new Map([['known', ['/bin/true']]])
  const probe = { file: '', position: POSITION }
  const places = { record: () => POSITION }
  const find = (how: object) => {
    const health = { probe: undefined, allowed: [], slowStartMs: 0, ...how }
    return [...findLostCommands(records, health, places)].map(({ message, position }) => [
      position,
      message,
    ])
  }
  const lost = (name: string, command: string) => [
    POSITION,
    `DNSRecord default/${name}: no probe-exec defines command ${command}; the addresses are not probed`,
  ]
  t.strictSame(find({ probe, commands }), [lost('b', 'lost')])
  t.strictSame(find({ probe }), [lost('a', 'known'), lost('b', 'lost')])
  t.strictSame(find({}), [], 'another block may probe them')
})
