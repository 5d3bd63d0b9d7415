export interface Chain {
  readonly name: string
  /** Where the kernel calls it, as nft writes it; '' = rules jump to it. */
  readonly base: string
  readonly rules: readonly string[]
}

/** The chain that the profiles of all clients begin with. */
export const CLIENT_CHAIN = 'client'
export const DROP = 'counter drop'

/** Statements that create chains, or replace the rules of existing ones. They may jump to each other. */
export function fillChains(table: string, chains: readonly Chain[]): readonly string[] {
  const statements: string[] = []
  for (const { name, base } of chains) {
    const body = base === '' ? '' : ` { ${base} }`
    statements.push(`add chain inet ${table} ${name}${body}`, `flush chain inet ${table} ${name}`)
  }
  for (const { name, rules } of chains) {
    for (const rule of rules) statements.push(`add rule inet ${table} ${name} ${rule}`)
  }
  return statements
}

/** Statements that remove chains. They may jump to each other, and may be gone already. */
export function removeChains(table: string, names: readonly string[]): readonly string[] {
  const statements: string[] = []
  for (const name of names) {
    statements.push(`add chain inet ${table} ${name}`, `flush chain inet ${table} ${name}`)
  }
  for (const name of names) statements.push(`delete chain inet ${table} ${name}`)
  return statements
}
