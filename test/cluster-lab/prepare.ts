import { prepareClusterLab } from './cluster-lab.ts';
import { ASSETS, findPrograms } from './given-programs.ts';

/** Run by `make cluster-lab` before the test: what has to be fetched is fetched while there is a network. */
const programs = findPrograms(process.env[ASSETS], process.env['PATH'] ?? '');
if (!('missing' in programs)) await prepareClusterLab(programs);
