import t from 'tap'
import { unsignedAnswers } from '../../../src/plugins/dnssec/unsigned-answers.ts'

for (const [directives, denial, warning] of [
  ['dnssec hosts file', 'nsec', /answers of hosts for names that the zones of file do not have/],
  [
    'dnssec template kuadrant',
    'nsec3',
    /answers of template .* zones of kuadrant .*`denial compact`/,
  ],
  ['dnssec hosts file', 'compact', /^$/],
  ['dnssec hosts template', 'nsec', /^$/],
  ['dnssec file', 'nsec', /^$/],
  ['dnssec hosts kubernetes k8s_external', 'nsec', /^$/],
  ['dnssec kubernetes secondary', 'nsec', /^$/],
] as const) {
  t.test(`${directives}, ${denial}`, (t) => {
    t.match(unsignedAnswers(directives.split(' '), denial), warning)
    t.end()
  })
}
