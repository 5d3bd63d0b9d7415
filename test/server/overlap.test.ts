import t from 'tap'
import type { Key } from '../../src/corefile/key.ts'
import { OverlapCheck } from '../../src/server/overlap.ts'

const key = (zoneText: string, port = 53): Key => ({
  scheme: 'dns',
  zone: new Uint8Array(1),
  zoneText,
  port,
})

type Step = readonly [key: Key, host: string, want: string | undefined, filtered?: boolean]

const tables: readonly { name: string; steps: readonly Step[] }[] = [
  {
    name: 'the same key twice',
    steps: [
      [key('.'), '', undefined],
      [key('.'), '', 'cannot serve dns://.:53 - it is already defined'],
    ],
  },
  {
    name: 'bound behind unbound, another port is free',
    steps: [
      [key('.'), '', undefined],
      [key('.', 54), '', undefined],
      [
        key('.'),
        '127.0.0.1',
        'cannot serve dns://.:53 on 127.0.0.1 - zone overlap listener capacity with dns://.:53',
      ],
    ],
  },
  {
    name: 'the same bound key twice',
    steps: [
      [key('.'), '127.0.0.1', undefined],
      [key('.'), '127.0.0.1', 'cannot serve dns://.:53 on 127.0.0.1 - it is already defined'],
    ],
  },
  {
    name: 'unbound behind bound names the last one bound',
    steps: [
      [key('.'), '127.0.0.1', undefined],
      [key('.'), '128.0.0.1', undefined],
      [key('.'), '129.0.0.1', undefined],
      [
        key('.'),
        '',
        'cannot serve dns://.:53 - zone overlap listener capacity with dns://.:53 on 129.0.0.1',
      ],
    ],
  },
  {
    name: 'blocks with a view share a key with one without, in front of it',
    steps: [
      [key('.'), '', undefined, true],
      [key('.'), '', undefined, true],
      [key('.'), '', undefined],
    ],
  },
  {
    name: 'blocks with a view share a key with one without, behind it',
    steps: [
      [key('.'), '', undefined],
      [key('.'), '', undefined, true],
      [key('.'), '', undefined, true],
      [key('.'), '', 'cannot serve dns://.:53 - it is already defined'],
    ],
  },
  {
    name: 'a bound view overlaps an unbound block without one',
    steps: [
      [key('.'), '', undefined],
      [
        key('.'),
        '127.0.0.1',
        'cannot serve dns://.:53 on 127.0.0.1 - zone overlap listener capacity with dns://.:53',
        true,
      ],
    ],
  },
]

t.test('keys that overlap are refused as CoreDNS refuses them', async (t) => {
  for (const { name, steps } of tables) {
    const overlaps = new OverlapCheck()
    const got = steps.map(([key, host, , filtered]) => overlaps.check(key, host, filtered ?? false))
    t.strictSame(
      got,
      steps.map(([, , want]) => want),
      name,
    )
  }
})
