/** The daemon killed during updates by bootc: its locks and half-staged deployments are its own. */
import { killedDaemonOfTool } from '../tool-killed.ts';
import { givenSystem, noBootc } from './given-bootc.ts';

killedDaemonOfTool('bootc', () => givenSystem(), noBootc);
