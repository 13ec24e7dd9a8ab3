"""AL-QASIDA: conversion of rows, and prompt functions."""
