import { killedDaemonOfTool } from '../tool-killed.ts';
import { givenSystem, noBootc } from './given-bootc.ts';

killedDaemonOfTool('bootc', () => givenSystem(), noBootc);
