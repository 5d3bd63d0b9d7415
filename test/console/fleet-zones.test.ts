import t from 'tap'
import { serverPath } from '../../src/api/console/client/shell/server-path.ts'
import { compareZones } from '../../src/api/console/client/views/fleet/compare-zones.ts'
import type { FleetServer, FleetZone } from '../../src/plugin/admin-fleet.ts'

function server(name: string, zones: readonly FleetZone[] | null, omitted = 0): FleetServer {
  const report = {
    version: '1',
    uptimeSeconds: null,
    notReady: [],
    problemCounts: {},
    queriesPerSecond: null,
    zones: zones ?? [],
    zonesOmitted: omitted,
    peers: [],
    peersOmitted: 0,
    drains: [],
    drainsOmitted: 0,
  }
  const base = { name, address: '', isSelf: name === '', error: '', ageSeconds: null }
  return { ...base, state: 'up', report: zones === null ? null : report }
}

const zone = (name: string, serial: number | null, directive = 'file'): FleetZone => {
  return { zone: name, directive, serial }
}

t.test('serials of a zone are compared', async (t) => {
  const table: readonly (readonly [readonly FleetServer[], object])[] = [
    [[server('', [zone('a.', 1)]), server('b', [zone('a.', 1)])], { state: 'same', missing: [] }],
    [[server('', [zone('a.', 1)]), server('b', [zone('a.', 2)])], { state: 'different' }],
    [
      [server('', [zone('a.', 1)]), server('b', [zone('a.', 2, 'secondary')])],
      { state: 'different' },
    ],
    [
      [server('', [zone('a.', 1, 'kuadrant')]), server('b', [zone('a.', 2, 'kuadrant')])],
      { state: 'counted' },
    ],
    [[server('', [zone('a.', 1)]), server('b', [zone('a.', null)])], { state: 'not loaded' }],
    [[server('', [zone('a.', 1), zone('a.', 2)])], { state: 'different' }],
    [[server('', [zone('a.', 1)]), server('b', [])], { state: 'same', missing: ['b'] }],
    [[server('', [zone('a.', 1)]), server('b', [], 1)], { missing: [] }],
    [[server('', [zone('a.', 1)]), server('b', null)], { missing: [] }],
  ]
  for (const [i, [servers, expected]] of table.entries()) {
    t.match(compareZones(servers), [{ zone: 'a.', ...expected }], `row ${i}`)
  }
})

t.test('requests ask the server that the page shows', async (t) => {
  const table = [
    ['GET', '/v1/status', '', '/v1/status'],
    ['GET', '/v1/status', 'ns2', '/v1/status?server=ns2'],
    ['GET', '/v1/map?name=a%26b&type=A', 'ns2', '/v1/map?name=a%26b&type=A&server=ns2'],
    ['GET', '/v1/status?server=ns3', 'ns2', '/v1/status?server=ns3'],
    ['GET', '/v1/fleet', 'ns2', '/v1/fleet'],
    ['GET', '/v1/session', 'ns2', '/v1/session'],
    ['POST', '/v1/explain', 'a&b', '/v1/explain?server=a%26b'],
    ['POST', '/v1/drains', '', '/v1/drains'],
    ['POST', '/v1/drains', 'ns2', undefined],
    ['DELETE', '/v1/drains?id=1', 'ns2', undefined],
  ] as const
  for (const [method, path, name, expected] of table) {
    t.equal(serverPath(method, path, name), expected, `${method} ${path} ${name}`)
  }
})
