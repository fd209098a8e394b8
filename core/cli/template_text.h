/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of plugins/template as text, made by the build; the word "template" in them is replaced by the new name.
 */
#ifndef DTRAIN_CORE_CLI_TEMPLATE_TEXT_H
#define DTRAIN_CORE_CLI_TEMPLATE_TEXT_H

extern const char dt_template_phase_c[], dt_template_policy_c[], dt_template_model_c[], dt_template_env_c[];
extern const char dt_template_data_c[], dt_template_project_mk[], dt_template_project_cxx_mk[];
extern const char dt_template_README_phase_md[], dt_template_README_policy_md[], dt_template_README_model_md[];
extern const char dt_template_README_env_md[], dt_template_README_data_md[];

#endif
