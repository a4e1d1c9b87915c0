import { createServer } from 'node:http';

const { moduleLoadList } = process as typeof process & { readonly moduleLoadList: readonly string[] };

/** Prints whether it can serve, and what of Node's fetch it has loaded for that. */
process.stdout.write(
  [typeof createServer, ...moduleLoadList.filter((name) => name.includes('undici'))].join(' '),
);
