import type { Row } from './row.ts'
import {
  A,
  AMERICA,
  BOTH,
  EUROPE,
  FROM_V1,
  HEAVY,
  LIGHT,
  ONE,
  PLAIN_ONE,
  PLAIN_TWO,
  SHARED,
  set,
  sketch,
  THREE,
  TWO,
  V1_LAST,
} from './sketches.ts'

export const ANNOTATIONS: readonly Omit<Row, 'group'>[] = [
  {
    name: '`all-down`',
    there: { ...PLAIN_ONE, ...set('all-down', 'closed'), down: [ONE] },
    here: { ...PLAIN_TWO, down: [TWO] },
    want: '',
    but: FROM_V1(`app A ttl=60 *: ${TWO}`, `app A ttl=60 *: ${ONE}`),
  },
  ...(
    [
      ['sticky', '16 48', 'sticky=16/48'],
      ['answers', '2', 'answers=2'],
    ] as const
  ).map(([name, value, printed]) => ({
    name: `\`${name}\``,
    there: sketch(LIGHT, set(name, value)),
    here: HEAVY,
    want: SHARED.replace(' *', ` ${printed} *`),
    but: FROM_V1(
      `app A ttl=60 ${printed} *: ${ONE} (20) ${TWO} (80)`,
      `app A ttl=60 *: ${ONE} (20) ${TWO} (80)`,
    ),
  })),
  {
    name: '`failover`',
    there: { ...EUROPE, ...set('failover', 'GEO-EU: GEO-NA'), down: [ONE] },
    here: { endpoints: [...AMERICA.endpoints, `${A} ${THREE} id=three geo=*`] },
    want: `app A ttl=60 GEO-EU: ${TWO} GEO-NA: ${TWO} *: ${THREE}`,
    but: FROM_V1(
      `app A ttl=60 GEO-EU: ${TWO}+${THREE} *: ${TWO}+${THREE}`,
      `app A ttl=60 GEO-NA: ${TWO} *: ${THREE}`,
    ),
  },
  {
    name: '`shift`',
    there: sketch(LIGHT, set('shift', 'to=one steps=10%,100% bake=1h')),
    here: HEAVY,
    want: `app A ttl=60 *: ${ONE} (100000) ${TWO} (900000)`,
    but: FROM_V1(
      `app A ttl=60 *: ${ONE} (100000) ${TWO} (900000)`,
      `app A ttl=60 *: ${ONE} (20) ${TWO} (80)`,
    ),
  },
  {
    name: '`drain`',
    there: { ...PLAIN_ONE, ...set('drain', 'racks move') },
    here: PLAIN_TWO,
    want: `app A ttl=60 *: ${TWO}`,
    but: V1_LAST,
  },
  {
    name: '`drain-until` in the past',
    there: {
      ...PLAIN_ONE,
      annotations: { 'sextant.io/drain': '', 'sextant.io/drain-until': '2020-01-01T00:00:00Z' },
    },
    here: PLAIN_TWO,
    want: BOTH,
  },
]
