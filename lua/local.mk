# What goes into the program: lua/moho/NAME.lua is `require "moho.NAME"`. A new module is one more line.
lua_modules =
lua_modules += lua/moho/init.lua
lua_modules += lua/moho/complex.lua
lua_modules += lua/moho/show.lua
lua_modules += lua/moho/help.lua
lua_modules += lua/moho/help_command.lua
lua_modules += lua/moho/manual_html.lua
lua_modules += lua/moho/manual_man.lua
lua_modules += lua/moho/manual.lua
lua_modules += lua/moho/array.lua
lua_modules += lua/moho/array_math.lua
lua_modules += lua/moho/ops.lua
lua_modules += lua/moho/ops_apply.lua
lua_modules += lua/moho/ops_compose.lua
lua_modules += lua/moho/ops_devices.lua
lua_modules += lua/moho/ops_file.lua
lua_modules += lua/moho/device.lua
lua_modules += lua/moho/eikonal.lua
lua_modules += lua/moho/wave.lua
lua_modules += lua/moho/taper.lua
lua_modules += lua/moho/events.lua
lua_modules += lua/moho/signal.lua
lua_modules += lua/moho/spectra.lua
lua_modules += lua/moho/schema.lua
lua_modules += lua/moho/solvers.lua
lua_modules += lua/moho/solvers_call.lua
lua_modules += lua/moho/inversion.lua
lua_modules += lua/moho/solvers_show.lua
lua_modules += lua/moho/io.lua
lua_modules += lua/moho/rsf.lua
lua_modules += lua/moho/provenance.lua
lua_modules += lua/moho/options.lua
lua_modules += lua/moho/log.lua
lua_modules += lua/moho/progress.lua
lua_modules += lua/moho/repl.lua
lua_modules += lua/moho/prompt.lua
lua_modules += lua/moho/complete.lua
lua_modules += lua/moho/strict.lua
lua_modules += lua/moho/sweep.lua
lua_modules += lua/moho/sweep_command.lua
lua_modules += lua/moho/head_command.lua
lua_modules += lua/moho/convert_command.lua
lua_modules += lua/moho/sweep_folder.lua
lua_modules += lua/moho/sweep_merge.lua
lua_modules += lua/moho/sweep_progress.lua
lua_modules += lua/moho/sweep_queue.lua
lua_modules += lua/moho/sweep_report.lua
lua_modules += lua/moho/sweep_run.lua
lua_modules += lua/moho/sweep_space.lua
lua_modules += lua/moho/sweep_table.lua
lua_modules += lua/moho/sweep_text.lua
lua_modules += lua/moho/sweep_worker.lua
lua_modules += lua/moho/test.lua
lua_modules += lua/moho/testing.lua
lua_modules += lua/moho/plot.lua
lua_modules += lua/moho/plot_args.lua
lua_modules += lua/moho/draw.lua
EXTRA_DIST += $(lua_modules)

# The manual, written by the program itself: what help() shows, as one page, as text, and as man moho.
manual = ./moho$(EXEEXT) -E help
manual_env = ASAN_OPTIONS='detect_leaks=0:protect_shadow_gap=0'
moho.1: moho$(EXEEXT)
	$(AM_V_GEN)$(manual_env) $(manual) --man >$@-t && mv -f $@-t $@
reference.html: moho$(EXEEXT)
	$(AM_V_GEN)$(manual_env) $(manual) --html >$@-t && mv -f $@-t $@
reference.txt: moho$(EXEEXT)
	$(AM_V_GEN)$(manual_env) $(manual) --text >$@-t && mv -f $@-t $@
nodist_man1_MANS = moho.1
nodist_doc_DATA = reference.html reference.txt
CLEANFILES += moho.1 reference.html reference.txt
