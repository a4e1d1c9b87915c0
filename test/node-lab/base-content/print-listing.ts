import { listMachine } from './machine-listing.ts';

/** Run in a machine, by the root that it is given there (guest-listing.ts). */
process.stdout.write(JSON.stringify([...listMachine(process.argv[2] ?? '/')]));
