/** The daemon's course on a machine that bootc keeps. */
import { daemonOfTool } from '../tool-daemon.ts';
import { givenSystem, noBootc } from './given-bootc.ts';

daemonOfTool('bootc', () => givenSystem(), noBootc);
