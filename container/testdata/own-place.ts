import path from 'node:path';

/** Prints where its own source is. */
process.stdout.write(path.join(import.meta.dirname, 'own-place.ts'));
