// One attack, in a process of its own: node attacker.mjs ATTACK PORTS
import { ATTACKS } from './attacks.mjs'

const [name, ports] = process.argv.slice(2)
process.on('uncaughtException', () => {})
ATTACKS[name](JSON.parse(ports))
