import t from 'tap'
import {
  activeCondition,
  failedCondition,
  healthyCondition,
  inactiveCondition,
  invalidCondition,
  noProviderCondition,
  noZoneCondition,
  printConditions,
  readyCondition,
  removedCondition,
} from '../../../src/operator/status/conditions.ts'

const NOW_MS = Date.parse('2026-03-01T12:00:00.750Z')

t.test('conditions have the reasons and messages that upstream has', (t) => {
  const table = [
    { given: readyCondition(), want: ['ProviderSuccess', 'Provider ensured the dns record'] },
    {
      given: noZoneCondition('no zone for host: a.b'),
      want: ['DNSProviderError', 'Unable to find suitable zone in provider: no zone for host: a.b'],
    },
    {
      given: noProviderCondition('x'),
      want: ['DNSProviderError', 'The dns provider could not be loaded: x'],
    },
    {
      given: invalidCondition('x'),
      want: ['ValidationError', 'validation of DNSRecord failed: x'],
    },
    {
      given: failedCondition('x'),
      want: ['ProviderError', 'The DNS provider failed to ensure the record: x'],
    },
    {
      given: removedCondition(),
      want: ['ProviderEndpointsRemoved', 'DNS records removed from provider'],
    },
    {
      given: inactiveCondition(),
      want: ['MemberOfInactiveGroup', 'No further actions to take while in inactive group'],
    },
    {
      given: inactiveCondition('a note'),
      want: ['MemberOfInactiveGroup', 'No further actions to take while in inactive group; a note'],
    },
    {
      given: activeCondition({ group: 'g1', active: ['g1'] }),
      want: ['MemberOfActiveGroup', 'Group is included in active groups'],
    },
    {
      given: activeCondition({ group: 'g1', active: undefined }),
      want: ['MemberOfActiveGroup', 'The active groups are not known; the group counts as active'],
    },
    {
      given: activeCondition({ group: 'g1', active: [] }),
      want: ['NotMemberOfActiveGroup', 'Group is not included in active groups'],
    },
  ]
  for (const { given, want } of table) t.strictSame([given.reason, given.message], want)
  t.strictSame(
    table.map(({ given }) => given.isTrue),
    [true, false, false, false, false, false, false, false, true, true, false],
  )
  t.end()
})

t.test('the time of a transition changes with the status, and with nothing else', (t) => {
  const [first] = printConditions([readyCondition()], [], 1, NOW_MS)
  t.strictSame(first, {
    type: 'Ready',
    status: 'True',
    reason: 'ProviderSuccess',
    message: 'Provider ensured the dns record',
    observedGeneration: 1,
    lastTransitionTime: '2026-03-01T12:00:00Z',
  })
  const [noted] = printConditions([readyCondition('a note')], [first!], 2, NOW_MS + 60_000)
  t.match(noted, { lastTransitionTime: '2026-03-01T12:00:00Z', observedGeneration: 2 })
  const [failed] = printConditions([failedCondition('x')], [noted!], 2, NOW_MS + 60_000)
  t.match(failed, { status: 'False', lastTransitionTime: '2026-03-01T12:01:00Z' })
  t.end()
})

t.test('the text of a peer cannot reorder or hide a message', (t) => {
  const text = 'set identifier "a\u202eb\u2066c\u200bd\ne"'
  const [condition] = printConditions([failedCondition(text)], [], 1, NOW_MS)
  t.match(condition?.message, 'set identifier "a\\u202eb\\u2066c\\u200bd\\x0ae"')
  t.end()
})

t.test('a message that is too long is cut', (t) => {
  const [condition] = printConditions([failedCondition('x'.repeat(9000))], [], 1, NOW_MS)
  t.equal(String(condition?.message).length, 2000)
  t.end()
})

t.test('health is what all probes say together', (t) => {
  const up = { address: '192.0.2.1', health: 'up' } as const
  const down = { address: '192.0.2.2', health: 'down' } as const
  const unknown = { address: '192.0.2.3', health: 'unknown' } as const
  const notProbed = 'Secret token with headers is missing in namespace a'
  const lost = { address: '192.0.2.4', health: 'up', notProbed } as const
  const skipped = { address: '192.0.2.5', health: 'unknown', notProbed } as const
  const table = [
    { name: 'no probes, no condition', given: [], want: undefined },
    {
      name: 'all are up',
      given: [up],
      want: ['AllChecksPassed', 'All healthchecks succeeded', true],
    },
    {
      name: 'one that is unknown has not passed, though it is not down',
      given: [up, unknown],
      want: ['SomeChecksPassed', 'Probes are creating: [192.0.2.3]', false],
    },
    {
      name: 'targets that are down are named before unknown ones',
      given: [up, down, unknown],
      want: ['SomeChecksPassed', 'Not healthy addresses: [192.0.2.2]', false],
    },
    {
      name: 'some are down',
      given: [up, down, down],
      want: ['SomeChecksPassed', 'Not healthy addresses: [192.0.2.2]', false],
    },
    {
      name: 'all are down',
      given: [down],
      want: ['HealthChecksFailed', 'Not healthy addresses: [192.0.2.2]', false],
    },
    {
      name: 'nothing is known yet',
      given: [unknown],
      want: ['HealthChecksFailed', 'Probes are creating', false],
    },
    {
      name: 'an address that cannot be probed',
      given: [up, skipped, lost],
      want: [
        'NotProbed',
        `Addresses that cannot be probed are served: 192.0.2.5: ${notProbed}`,
        undefined,
      ],
    },
    {
      name: 'an address that could not be probed at the last attempt',
      given: [up, lost],
      want: [
        'AllChecksPassed',
        `All healthchecks succeeded; last attempt not made: 192.0.2.4: ${notProbed}`,
        true,
      ],
    },
    {
      name: 'one that is down, and one that cannot be probed',
      given: [down, skipped],
      want: [
        'HealthChecksFailed',
        `Not healthy addresses: [192.0.2.2]; addresses that cannot be probed are served: 192.0.2.5: ${notProbed}`,
        false,
      ],
    },
    {
      name: 'one that is not probed yet, and one that cannot be probed',
      given: [unknown, skipped],
      want: [
        'NotProbed',
        `Addresses that cannot be probed are served: 192.0.2.5: ${notProbed}`,
        undefined,
      ],
    },
  ]
  for (const { name, given, want } of table) {
    const condition = healthyCondition(given)
    const found = condition && [
      condition.reason,
      condition.message,
      condition.isUnknown ? undefined : condition.isTrue,
    ]
    t.strictSame(found, want, name)
  }
  t.end()
})
