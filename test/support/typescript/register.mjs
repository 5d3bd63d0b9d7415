// Named in .taprc: has test processes and their threads load TypeScript.
import { register } from 'node:module'

register('./hooks.mjs', import.meta.url)
