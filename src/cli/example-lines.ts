import type { ListenPlan } from '../server/listen-plan.ts'

/** Queries that show the features of the shipped Corefile.example; `-examples` prints them. */
export function exampleLines(plans: readonly ListenPlan[]): string[] {
  const plan = plans[0]
  if (plan === undefined) return []
  const dig = `dig @${plan.host === '' ? '127.0.0.1' : plan.host} -p ${plan.port}`
  return [
    '',
    'Try, in another terminal (Ctrl-C here stops the server):',
    `  ${dig} app.k.example.com +subnet=81.2.69.0/24    # a client in Europe`,
    `  ${dig} app.k.example.com +subnet=8.8.8.0/24      # a client in North America`,
    `  ${dig} g.app.k.example.com.kdrnt TXT             # the geo codes, for other sites`,
  ]
}
