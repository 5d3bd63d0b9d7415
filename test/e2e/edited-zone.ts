import { Random } from '../../src/base/random.ts'

/** Names that it begins with; it has up to twice as many. */
export const NAMES = 40

/** A zone that changes at random, as a master file. Its refresh timer is so long that only NOTIFYs count. */
export class EditedZone {
  serial = 1
  readonly #random = new Random(5)
  readonly #lines = new Map<string, string>()

  constructor() {
    for (let i = 0; i < NAMES; i++) this.#put()
  }

  edit(): void {
    this.serial++
    const changes = 1 + this.#random.below(4)
    for (let i = 0; i < changes; i++) {
      if (this.#random.below(3) > 0) this.#put()
      else this.#lines.delete([...this.#lines.keys()][this.#random.below(this.#lines.size)] ?? '')
    }
  }

  text(): string {
    const head = `$TTL 300\n@ SOA ns host ${this.serial} 1000 1 10000 60\n@ NS ns\nns A 192.0.2.1\n`
    return `${head}${[...this.#lines.values()].join('\n')}\n`
  }

  #put(): void {
    const name = `n${this.#random.below(NAMES * 2)}`
    const octet = this.#random.below(250)
    const ttl = 60 + this.#random.below(3)
    const forms = [
      `${name} ${ttl} A 192.0.2.${octet}\n${name} ${ttl} A 198.51.100.7`,
      `${name} ${ttl} TXT "v=${octet}" "two"\n${name} ${ttl} MX ${octet} mail`,
      `${name} ${ttl} CNAME ns`,
      `${name} ${ttl} NS ns.${name}\nns.${name} ${ttl} AAAA 2001:db8::${octet}`,
      `*.${name} ${ttl} SRV 0 ${octet} 443 www.${name}`,
    ]
    this.#lines.set(name, forms[this.#random.below(forms.length)]!)
  }
}
