import t from 'tap'
import { printRules, scanRules } from '../../../src/egress/agent/rules-text.ts'
import type { ClientRules } from '../../../src/egress/rules/rule.ts'
import { EVERY_NAME } from '../../../src/egress/selectors/every-name.ts'
import { type Dialect, scanSelector } from '../../../src/egress/selectors/scan-selector.ts'
import type { Selector } from '../../../src/egress/selectors/selector.ts'

const PATTERNS: readonly (readonly [Dialect, string])[] = [
  ['name', 'www.example.com'],
  ['openshift', '*.example.com'],
  ['npep', '*.example.com'],
  ['cilium-1.16', '*'],
  ['cilium-1.16', 'a*b.*.example.com'],
  ['cilium-1.19', '**'],
  ['cilium-1.19', '**.example.com'],
]

function selectorOf(dialect: Dialect, text: string): Selector {
  const selector = scanSelector(text, dialect)
  if (typeof selector === 'string') throw new Error(selector)
  return selector
}

t.test('each kind of selector survives its text', async (t) => {
  const selectors = [...EVERY_NAME, ...PATTERNS.map(([dialect, text]) => selectorOf(dialect, text))]
  for (const selector of selectors) {
    const rules: ClientRules = {
      lists: [
        [
          {
            otherwise: 'deny',
            rules: [
              {
                action: 'accept',
                networks: [],
                names: [selector],
                ports: undefined,
                lasts: 'ttl',
                origin: 'a',
              },
            ],
          },
        ],
      ],
      dns: [{ ports: undefined, names: [selector] }],
    }
    const read = scanRules(printRules(rules))
    const names = read?.dns?.[0]?.names ?? []
    t.strictSame(
      names.map(({ key, kind, suffix }) => ({ key, kind, suffix })),
      [{ key: selector.key, kind: selector.kind, suffix: selector.suffix }],
      selector.key,
    )
    t.equal(read === undefined ? '' : printRules(read), printRules(rules), `${selector.key}: again`)
  }
})
